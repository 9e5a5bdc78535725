defmodule Tame.Nng.Test.Sockets do
  @moduledoc false
  # Sockets that are connected, and what there is of descriptors.
  import ExUnit.Assertions

  def ways, do: [:nif, :driver]
  def transports, do: [:inproc, :ipc, :tcp]

  # An address of its own for each call.
  def address(:tcp), do: "tcp://127.0.0.1:0"
  def address(:inproc), do: "inproc://tame_nng_#{System.unique_integer([:positive])}"

  def address(:ipc) do
    name = "tame_nng_#{System.pid()}_#{System.unique_integer([:positive])}"
    "ipc://#{Path.join(System.tmp_dir!(), name)}"
  end

  def open(protocol, options \\ []) do
    {:ok, socket} = :tame_nng.open(protocol, options)
    socket
  end

  # The address that others dial.
  def listen(socket, transport) do
    {:ok, listener} = :tame_nng.listen(socket, address(transport))
    {:ok, url} = :tame_nng.url(listener)
    url
  end

  def dial(socket, url) do
    {:ok, dialer} = :tame_nng.dial(socket, url, [:wait])
    dialer
  end

  # Two sockets, connected on both sides.
  def pair(listens, dials, options \\ [], transport \\ :inproc) do
    {a, b} = {open(listens, options), open(dials, options)}
    dial(b, listen(a, transport))
    assert connected(a, 1)
    {a, b}
  end

  def connected(socket, connections) do
    until(fn -> match?({:ok, %{connections: ^connections}}, :tame_nng.getstat(socket)) end)
  end

  # The descriptors of sockets, pipes and the like of this VM.
  def descriptors, do: length(File.ls!("/proc/self/fd"))

  # Whether a condition holds within half a minute: for what nobody announces.
  def until(condition, ms \\ 30_000) do
    cond do
      condition.() -> true
      ms <= 0 -> false
      true -> Process.sleep(5) && until(condition, ms - 5)
    end
  end

  # This many numbers, by receives that have no time, or hardly any.
  def collect(_, 0), do: []

  def collect(socket, left) do
    case :tame_nng.recv(socket, :rand.uniform(3) - 1) do
      {:ok, <<n::32>>} -> [n | collect(socket, left - 1)]
      {:error, :timeout} -> collect(socket, left)
    end
  end

  def waiting?(pid), do: Process.info(pid, :status) == {:status, :waiting}
end
