defmodule Tame.Nng.ContextsTest do
  # Many conversations on one socket, by both ways.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets

  for by <- [:nif, :driver] do
    describe "#{by}:" do
      @describetag by: by

      test "many requests are out at once, and each gets its own reply", %{by: by} do
        {rep, req} = pair(:rep0, :req0, [by: by], :tcp)
        servers = for _ <- 1..4, do: spawn_link(fn -> serve(rep) end)

        tasks =
          for n <- 1..50 do
            Task.async(fn ->
              for m <- 1..5 do
                body = if n == 1, do: :binary.copy("x", 300_000), else: "#{n}.#{m}"
                assert :tame_nng.request(req, body, 20_000) == {:ok, "re:" <> body}
              end
            end)
          end

        for task <- tasks, do: Task.await(task, 30_000)
        for server <- servers, do: Process.unlink(server)
        for server <- servers, do: Process.exit(server, :kill)
        close([rep, req])
      end

      test "a deadline, for a request and for a context", %{by: by} do
        {rep, req} = pair(:rep0, :req0, by: by)
        assert :tame_nng.request(req, "x", 30) == {:error, :timeout}
        {:ok, context} = :tame_nng.context(req)
        assert :tame_nng.recv(context, 30) == {:error, :estate}
        assert :tame_nng.send(context, "y", 1000) == :ok
        assert :tame_nng.recv(context, 0) == {:error, :timeout}
        assert :tame_nng.close(context) == :ok
        assert :tame_nng.recv(context, 30) == {:error, :closed}
        assert :tame_nng.send(context, "y", 30) == {:error, :closed}
        assert :tame_nng.close(context) == :ok
        close([rep, req])
      end

      test "one operation at a time; closing it, or its socket, ends that", %{by: by} do
        for closes <- [:context, :socket] do
          {rep, req} = pair(:rep0, :req0, by: by)
          {:ok, context} = :tame_nng.context(rep)
          task = Task.async(fn -> :tame_nng.recv(context) end)
          assert until(fn -> waiting?(task.pid) end)
          assert :tame_nng.recv(context, 10) == {:error, :ebusy}
          assert :tame_nng.close(if closes == :context, do: context, else: rep) == :ok
          assert {:error, reason} = Task.await(task)
          assert reason in [:closed, :ecanceled]
          close([rep, req])
        end
      end

      test "who dies with a request out leaves nothing", %{by: by} do
        {rep, req} = pair(:rep0, :req0, by: by)
        before = descriptors()

        for _ <- 1..100 do
          pid = spawn(fn -> :tame_nng.request(req, "x") end)
          if :rand.uniform(2) == 1, do: assert(until(fn -> waiting?(pid) end))
          Process.exit(pid, :kill)
        end

        spawn_link(fn -> serve(rep) end)
        assert :tame_nng.request(req, "after all", 5000) == {:ok, "re:after all"}
        assert descriptors() <= before
        close([req])
      end

      test "subscriptions: each context has the socket's topics", %{by: by} do
        {pub, sub} = pair(:pub0, :sub0, by: by)
        :ok = :tame_nng.setopts(sub, subscribe: "")
        :ok = :tame_nng.send(pub, "x")
        assert :tame_nng.recv(sub, 5000) == {:ok, "x"}
        {:ok, context} = :tame_nng.context(sub)
        assert :tame_nng.send(context, "x", 10) == {:error, :enotsup}
        assert :tame_nng.recv(context, 10) == {:error, :timeout}
        close([pub, sub])
      end

      test "a protocol without contexts says so", %{by: by} do
        socket = open(:push0, by: by)
        assert :tame_nng.context(socket) == {:error, :enotsup}
        assert :tame_nng.request(socket, "x") == {:error, :enotsup}
        close([socket])
      end
    end
  end

  defp serve(rep) do
    {:ok, context} = :tame_nng.context(rep)
    serve_in(context)
  end

  defp serve_in(context) do
    with {:ok, bytes} <- :tame_nng.recv(context),
         :ok <- :tame_nng.send(context, ["re:", bytes]),
         do: serve_in(context)
  end

  defp close(sockets) do
    for socket <- sockets, do: assert(:tame_nng.close(socket) == :ok)
    refute_received _
  end
end
