defmodule Tame.HTTP.StoppedTest do
  # Processes that have requests when their server stops, and are not its own: none of them waits for what does not come.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client

  @long :binary.copy("x", 300_000)

  # Requests that belong to the test.
  defp ask(port, count) do
    for _ <- 1..count, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    for _ <- 1..count do
      assert_receive {:request, request}, 10_000
      request
    end
  end

  defp later do
    test = self()
    fn request -> send(test, {:request, request}) && :later end
  end

  test "answers in pieces that begin while the server stops" do
    for _ <- 1..3 do
      {server, port} = start(handler: later())
      stream = {:stream, fn send -> for(_ <- 1..3, do: send.(@long)) end}

      senders =
        for {request, n} <- Enum.with_index(ask(port, 500)) do
          spawn_monitor(fn ->
            receive do: (:go -> Process.sleep(div(n, 12)))
            :tame_http.reply(request, {200, [], stream})
          end)
        end

      for {pid, _} <- senders, do: send(pid, :go)
      Process.sleep(10)
      :ok = :tame_http.drain(server, 0)
      for {_, monitor} <- senders, do: assert_receive({:DOWN, ^monitor, _, _, :normal}, 10_000)
    end
  end
end
