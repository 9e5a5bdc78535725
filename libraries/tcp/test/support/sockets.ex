defmodule Tame.Tcp.Test.Sockets do
  @moduledoc false
  # Pairs of sockets, and what there is of descriptors.

  @passive [ip: :loopback, active: false]

  # {listening, port}
  def listen(options \\ []) do
    {:ok, listening} = :tame_tcp.listen(0, Keyword.merge(@passive, options))
    {:ok, {_, port}} = :tame_tcp.sockname(listening)
    {listening, port}
  end

  # Both ends of a connection, passive, of the caller.
  def pair(options \\ []) do
    {listening, port} = listen(options)
    {:ok, client} = :tame_tcp.connect(:loopback, port, [{:active, false} | options])
    {:ok, server} = :tame_tcp.accept(listening, 5000)
    :ok = :tame_tcp.close(listening)
    {client, server}
  end

  # Ours against a gen_tcp socket.
  def with_gen_tcp do
    {listening, port} = listen()
    {:ok, peer} = :gen_tcp.connect({127, 0, 0, 1}, port, [:binary, active: false])
    {:ok, socket} = :tame_tcp.accept(listening, 5000)
    :ok = :tame_tcp.close(listening)
    {socket, peer}
  end

  # The descriptors of sockets, pipes and the like of this VM.
  def descriptors, do: length(File.ls!("/proc/self/fd"))

  def waiting?(pid), do: Process.info(pid, :status) == {:status, :waiting}

  # Whether a condition holds within half a minute: for what nobody announces.
  def until(condition, ms \\ 30_000) do
    cond do
      condition.() -> true
      ms <= 0 -> false
      true -> Process.sleep(5) && until(condition, ms - 5)
    end
  end
end
