defmodule Tame.Test.RingHost do
  @moduledoc false
  # The echo host (c_src/ring/ring_echo.c) as a port; it ends with the process that started it.

  # What its functions do is listed in ring_echo.c.
  @functions %{
    echo: 0,
    echo_list: 1,
    slow_echo: 2,
    die: 3,
    until_cancelled: 4,
    raise: 5,
    badarg: 6,
    nonsense: 7,
    lease: 8,
    gone: 9,
    cancelled: 10,
    dropped: 11,
    reply_pages: 12,
    counters: 13,
    many_leases: 14,
    raw: 15,
    leases: 16,
    slow_leases: 17
  }

  # Built by `make natives`. TAME_TEST_RING_ECHO names another: one built with sanitizers.
  defp program do
    built = Path.join(["c_src/build", "erts-#{:erlang.system_info(:version)}", "tame_ring_echo"])
    System.get_env("TAME_TEST_RING_ECHO", Path.join(:tame.source_dir(), built))
  end

  def start(args \\ []) do
    port =
      Port.open({:spawn_executable, program()}, [
        :binary,
        :exit_status,
        line: 100,
        args: args
      ])

    receive do
      {^port, {:data, {:eol, line}}} ->
        [os_pid, fd] = line |> String.split() |> Enum.map(&String.to_integer/1)
        %{port: port, os_pid: os_pid, fd: fd}
    end
  end

  def start_ring(args \\ [], options \\ %{}) do
    host = start(args)
    {:ok, ring} = :tame_ring.open(host.os_pid, host.fd, options)
    Map.put(host, :ring, ring)
  end

  # A port that is closed says no more; its program ends at the end of its input.
  def stop(host), do: Port.close(host.port)

  def call(host, name, args, timeout \\ 30_000) do
    :tame_ring.call(host.ring, Map.fetch!(@functions, name), args, timeout)
  end
end
