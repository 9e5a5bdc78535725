# An echo server, and a client that asks it: mix run examples/echo.exs
defmodule Echo do
  def accept(listening) do
    {:ok, socket} = :tame_tcp.accept(listening)
    pid = spawn(fn -> receive(do: (:yours -> echo(socket))) end)
    :ok = :tame_tcp.controlling_process(socket, pid)
    send(pid, :yours)
    accept(listening)
  end

  defp echo(socket) do
    with {:ok, bytes} <- :tame_tcp.recv(socket, 0),
         :ok <- :tame_tcp.send(socket, bytes),
         do: echo(socket)
  end
end

{:ok, listening} = :tame_tcp.listen(0, ip: :loopback, active: false)
{:ok, {_, port}} = :tame_tcp.sockname(listening)
server = spawn(fn -> Echo.accept(listening) end)

{:ok, client} = :tame_tcp.connect(:loopback, port, [active: false], 1000)
:ok = :tame_tcp.send(client, ["to be ", "or not"])
{:ok, "to be or not" = answer} = :tame_tcp.recv(client, 12, 1000)
IO.puts(answer)
Process.exit(server, :kill)
:ok = :tame_tcp.close(client)
:ok = :tame_tcp.close(listening)
