defmodule Tame.Tcp.Test.FullTable do
  @moduledoc false
  # What is done in a VM whose system has no room for a file while `switch` exists (c/full_table.c).
  import Tame.Tcp.Test.Sockets

  # What accept (one that waits, then one that comes), connect and listen answer meanwhile, and gen_tcp's connect;
  # how many descriptors came; and what the connection that could not be taken sends when there is room.
  def run(switch) do
    {:ok, _} = Application.ensure_all_started(:tame_tcp)
    {listening, port} = listen()
    {:ok, client} = :socket.open(:inet, :stream, :tcp)
    before = descriptors()
    waits = Task.async(fn -> :tame_tcp.accept(listening) end)
    true = until(fn -> Process.info(waits.pid, :status) == {:status, :waiting} end)
    File.write!(switch, "")
    :ok = :socket.connect(client, %{family: :inet, addr: {127, 0, 0, 1}, port: port})

    answers = [
      Task.await(waits),
      :tame_tcp.accept(listening, 1000),
      :tame_tcp.connect(:loopback, port, active: false),
      :tame_tcp.listen(0, []),
      :gen_tcp.connect({127, 0, 0, 1}, port, [])
    ]

    more = descriptors() - before
    File.rm!(switch)
    {:ok, server} = :tame_tcp.accept(listening, 5000)
    :ok = :socket.send(client, "x")
    {answers, more, :tame_tcp.recv(server, 1, 5000)}
  end
end
