defmodule Tame.Tcp.Bench.Calls do
  @moduledoc false
  # How long each native call of tame_tcp takes that has much to do, and so holds its scheduler.

  @bytes 64 * 1024 * 1024
  @part 40_000_000

  def run(rounds) do
    {client, server} = pair()
    bytes = :binary.copy("x", @bytes)

    rounds = for _ <- 1..rounds, do: whole(client, server, bytes) ++ early(client, server, bytes)

    IO.puts("\ncalls of tame_tcp, each by itself            calls   p50 µs      p99      max")

    names = [
      "send of 64 MiB",
      "recv of 64 MiB",
      "recv of 40 MB of what came early",
      "recv of more"
    ]

    for {name, us} <- Enum.zip(names, Enum.zip_with(rounds, &Enum.concat/1)),
        do: print(name, Enum.sort(us))

    :ok = :tame_tcp.close(client)
  end

  defp pair do
    {:ok, listening} = :tame_tcp.listen(0, ip: :loopback, active: false)
    {:ok, {_, port}} = :tame_tcp.sockname(listening)
    {:ok, client} = :tame_tcp.connect(:loopback, port, active: false)
    {:ok, server} = :tame_tcp.accept(listening)
    {client, server}
  end

  defp whole(client, server, bytes) do
    sender = Task.async(fn -> send_all(client, bytes, []) end)
    received = recv(server, @bytes, [])
    [Task.await(sender, :infinity), received]
  end

  # A receive of too much ends by its time, and a part of what came is taken.
  defp early(client, server, bytes) do
    # One byte is missing.
    sender = Task.async(fn -> :tame_tcp.send(client, binary_part(bytes, 1, @bytes - 1)) end)
    :ok = early_wait(server, sender)
    part = recv(server, @part, [])
    {:ok, _} = :tame_tcp.recv(server, 0)
    [part]
  end

  defp early_wait(server, sender) do
    {:error, :timeout} = :tame_tcp.recv(server, @bytes, 100)
    if Task.yield(sender, 0), do: :ok, else: early_wait(server, sender)
  end

  defp send_all(socket, bytes, times) do
    ref = make_ref()
    {us, answer} = :timer.tc(fn -> :tame_tcp_nif.send(socket, [bytes], ref) end)

    case answer do
      :ok ->
        [us | times]

      _ ->
        sent = if answer == :wait, do: 0, else: elem(answer, 1)
        receive(do: ({:tame_fd, ^ref, :ready} -> :ok))
        send_all(socket, binary_part(bytes, sent, byte_size(bytes) - sent), [us | times])
    end
  end

  defp recv(socket, size, times) do
    ref = make_ref()

    case :timer.tc(fn -> :tame_tcp_nif.recv(socket, size, ref) end) do
      {us, :wait} -> receive(do: ({:tame_fd, ^ref, :ready} -> recv(socket, size, [us | times])))
      {us, {:ok, _}} -> [us | times]
    end
  end

  defp print(name, us) do
    count = length(us)
    at = fn share -> Enum.at(us, min(count - 1, floor(count * share))) end

    cells =
      for n <- [count, at.(0.5), at.(0.99), List.last(us)], do: String.pad_leading("#{n}", 9)

    IO.puts("  " <> String.pad_trailing(name, 40) <> Enum.join(cells))
  end
end
