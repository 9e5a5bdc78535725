defmodule Tame.Tcp.Bench.Ways do
  @moduledoc false
  alias Tame.Tcp.Bench.Bare

  # gen_tcp, OTP's socket, tame_tcp and its floor by the same words. `_once` receives by {active, once}; gen_tcp_once_64k has a
  # `buffer` of 64 KiB, which tame_tcp has as its default, and gen_tcp has not.
  #
  # All send by reno, which every Linux has, as the peer does. Where the system's own choice paces (bbr), a sender that comes
  # back sooner finds the last part still waiting for its time, and pays for a timer of the kernel each time.
  # BENCH_CONGESTION is another.
  @congestion System.get_env("BENCH_CONGESTION", "reno")

  @loopback {127, 0, 0, 1}

  def connect(:socket, port) do
    {:ok, socket} = :socket.open(:inet, :stream, :tcp)
    # Before it connects, as the others' options are: what bbr has begun, reno would not end.
    :ok = :socket.setopt(socket, {:tcp, :congestion}, String.to_charlist(@congestion))
    :ok = :socket.setopt(socket, {:tcp, :nodelay}, true)
    :ok = :socket.connect(socket, %{family: :inet, addr: @loopback, port: port})
    socket
  end

  def connect(:bare, port), do: Bare.connect(port, @congestion)

  def connect(way, port) do
    {:ok, socket} = module(way).connect(@loopback, port, options(way))
    socket
  end

  def listen(:socket) do
    {:ok, socket} = :socket.open(:inet, :stream, :tcp)
    :ok = :socket.bind(socket, %{family: :inet, addr: @loopback, port: 0})
    :ok = :socket.setopt(socket, {:tcp, :congestion}, String.to_charlist(@congestion))
    :ok = :socket.listen(socket, 1024)
    {:ok, %{port: port}} = :socket.sockname(socket)
    {socket, port}
  end

  def listen(way) do
    {:ok, socket} = module(way).listen(0, [{:ip, @loopback}, {:backlog, 1024} | options(way)])
    {:ok, {_, port}} = name(way, socket)
    {socket, port}
  end

  defp name(way, socket) when way in [:tame_tcp, :tame_tcp_once], do: :tame_tcp.sockname(socket)
  defp name(_, socket), do: :inet.sockname(socket)

  defp options(:gen_tcp_once_64k), do: [{:buffer, 65_536} | options(:gen_tcp)]
  # The last is TCP_CONGESTION.
  defp options(_), do: [:binary, {:active, false}, {:nodelay, true}, {:raw, 6, 13, @congestion}]

  def module(way) when way in [:tame_tcp, :tame_tcp_once], do: :tame_tcp
  def module(_), do: :gen_tcp

  def accept(:socket, socket), do: with({:ok, socket} <- :socket.accept(socket), do: socket)
  def accept(way, socket), do: with({:ok, socket} <- module(way).accept(socket), do: socket)

  def give(:socket, _, _), do: :ok
  def give(way, socket, pid), do: module(way).controlling_process(socket, pid)

  def close(:socket, socket), do: :socket.close(socket)
  def close(:bare, socket), do: Bare.close(socket)
  def close(way, socket), do: module(way).close(socket)

  def send(:socket, socket, bytes), do: :socket.send(socket, bytes)
  def send(:bare, socket, bytes), do: Bare.send_all(socket, bytes)
  def send(way, socket, bytes), do: module(way).send(socket, bytes)

  # As many bytes.
  def recv(:socket, socket, size), do: with({:ok, _} <- :socket.recv(socket, size), do: :ok)
  def recv(:bare, socket, size), do: with({:ok, _} <- Bare.receive_all(socket, size), do: :ok)

  def recv(way, socket, size) when way in [:gen_tcp_once, :gen_tcp_once_64k],
    do: once(:inet, socket, size)

  def recv(:tame_tcp_once, socket, size), do: once(:tame_tcp, socket, size)
  def recv(way, socket, size), do: with({:ok, _} <- module(way).recv(socket, size), do: :ok)

  defp once(module, socket, size) do
    with :ok <- module.setopts(socket, active: :once) do
      receive do
        {:tcp, ^socket, bytes} when byte_size(bytes) >= size -> :ok
        {:tcp, ^socket, bytes} -> once(module, socket, size - byte_size(bytes))
        {:tcp_closed, ^socket} -> {:error, :closed}
      end
    end
  end

  # Wants data, without a process that waits for it.
  def arm(:socket, socket) do
    {:select, _} = :socket.recv(socket, 0, [], :nowait)
    :ok
  end

  def arm(:gen_tcp, socket), do: :inet.setopts(socket, active: :once)
  def arm(:tame_tcp, socket), do: :tame_tcp.setopts(socket, active: :once)
end
