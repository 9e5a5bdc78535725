defmodule Tame.Test.RingHost do
  @moduledoc false
  # The echo host (test/support/c/ring_echo.c) as a port; it ends with the process that started it. bench/ring.exs uses
  # it, too.

  alias Tame.Test.CLibrary

  @c_src Path.expand("../../c_src", __DIR__)

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
    slow_leases: 17,
    untold: 18,
    spin_echo: 19
  }

  @doc "Brings the program up to date with its sources."
  def build do
    {output, status} = System.cmd("make", ["-s", "-C", @c_src, "ring-echo"], stderr_to_stdout: true)
    if status == 0, do: :ok, else: {:error, output}
  end

  # TAME_TEST_RING_ECHO names another program: one with sanitizers (make test-sanitized).
  defp program do
    System.get_env("TAME_TEST_RING_ECHO", Path.join(@c_src, "build/test/tame_ring_echo"))
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

  @doc "The folder of a tame_ring_nif.so whose structs have another layout, by its number, for the calling test."
  def other_layout! do
    folder = CLibrary.tmp_dir!()
    sources = Path.join(@c_src, "ring")
    file = Path.join(folder, "tame_ring_nif.c")
    File.cp!(Path.join(sources, "tame_ring_nif.c"), file)
    nifs = for part <- ~w(nif_ ../os/), do: Path.wildcard(Path.join(sources, part <> "*.c"))
    options = ["-std=gnu11", "-D_GNU_SOURCE", "-DABI_LAYOUT=99", "-I#{sources}"]
    {_, 0} = CLibrary.compile(folder, file, options ++ List.flatten(nifs))
    folder
  end

  @doc "A copy of the library in a folder of its own: the emulator loads it from there, as another one. The copy before it goes; there is none before 0."
  def load_from_copy(round) do
    from = List.to_string(:tame_native.dir())
    folder = Path.join(System.tmp_dir!(), "tame_ring_#{System.pid()}_#{round}")
    File.mkdir_p!(folder)

    File.cp!(Path.join(from, "tame_ring_nif.so"), Path.join(folder, "tame_ring_nif.so"))

    if round > 0, do: File.rm_rf!(from)
    :os.putenv(~c"TAME_NATIVE_DIR", String.to_charlist(folder))
  end

  # What a process held is collected with it.
  def in_a_process(function) do
    {pid, monitor} = spawn_monitor(function)

    receive do: ({:DOWN, ^monitor, :process, ^pid, reason} -> :normal = reason),
            after: (60_000 -> raise "does not end")
  end
end
