defmodule Tame.HTTP.StoppedTest do
  # Processes that have requests when their server stops, and are not its own: none of them waits for what does not come.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client

  @long :binary.copy("x", 300_000)

  # Requests that belong to the test, of clients that have not sent their bodies.
  defp ask(port, count) do
    request = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\n"
    for _ <- 1..count, do: send_raw(port, request)

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
      {server, port} = start(handler: later(), body: :stream)
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

  test "stop/1 and drain/2 answer ok where somebody else ends the server meanwhile" do
    test = self()

    for how <- [:supervisor, :killed, :stopped], function <- [:stop, :drain] do
      handler = fn request -> send(test, {:request, request}) && :later end
      options = %{ip: {127, 0, 0, 1}, handler: handler, body: :stream, shutdown_ms: 1000}
      child = :tame_http.child_spec(options)
      {:ok, supervisor} = Supervisor.start_link([child], strategy: :one_for_one)
      [{id, server, _, _}] = Supervisor.which_children(supervisor)
      # It is not over at once.
      _held = ask(:tame_http.port(server), 1)
      arguments = if function == :stop, do: [server], else: [server, 1000]
      ended = Task.async(fn -> apply(:tame_http, function, arguments) end)
      eventually(fn -> Process.info(ended.pid, :status) == {:status, :waiting} end)

      case how do
        :supervisor -> :ok = Supervisor.terminate_child(supervisor, id)
        :killed -> Process.exit(server, :kill)
        :stopped -> :ok = :tame_http.stop(server)
      end

      assert :ok = Task.await(ended, 20_000)
      Supervisor.stop(supervisor)
    end
  end

  test "who reads a body, or watches a client, while the server stops or when it has" do
    {server, port} = start(handler: later(), body: :stream)
    [one, other] = ask(port, 2)
    reader = Task.async(fn -> :tame_http.read_body(one, %{timeout: 60_000}) end)
    id = :tame_http.watch(one)
    eventually(fn -> Process.info(reader.pid, :status) == {:status, :waiting} end)
    :ok = :tame_http.drain(server, 0)
    assert {:error, :closed} = Task.await(reader, 10_000)
    assert_receive {:tame_http, :gone, ^id}, 10_000
    late = Task.async(fn -> :tame_http.read_body(other, %{timeout: 60_000}) end)
    assert {:error, :closed} = Task.await(late, 10_000)
    id = :tame_http.watch(other)
    assert_receive {:tame_http, :gone, ^id}, 10_000
  end
end
