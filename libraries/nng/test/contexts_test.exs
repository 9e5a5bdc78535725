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
        assert :tame_nng.send(context, "y", 5000) == :ok
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
          assert Task.await(task) == {:error, :closed}
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

      # nng 1.5 frees a socket beside the last call on a context, and a context beside its deadline; nng 1.9 to 1.11 an
      # operation that is stopped at its deadline.
      test "contexts that end, by closing, deadlines and deaths, while their socket closes", %{
        by: by
      } do
        before = descriptors()

        for n <- 1..150 do
          {rep, req} = pair(:rep0, :req0, by: by)
          server = spawn(fn -> serve(rep) end)
          users = for _ <- 1..6, do: spawn(fn -> asks(req, rem(n, 4)) end)
          if rem(n, 3) == 0, do: Process.sleep(:rand.uniform(3))

          ends =
            [fn -> :tame_nng.close(req) end, fn -> :tame_nng.close(rep) end] ++
              for pid <- [server | users], do: fn -> Process.exit(pid, :kill) end

          for task <- Enum.map(Enum.shuffle(ends), &Task.async/1), do: Task.await(task, 20_000)
        end

        assert until(fn -> descriptors() <= before end, 20_000)
      end

      # While nng 1.5 hands its contexts a message, it does not bear that one of them has no time left.
      test "a subscription's deadline that passes while messages come loses and doubles none", %{
        by: by
      } do
        {pub, sub} = pair(:pub0, :sub0, by: by)
        :ok = :tame_nng.setopts(pub, send_buffer: 4096)
        test = self()

        subscribers =
          for _ <- 1..4 do
            Task.async(fn ->
              {:ok, context} = :tame_nng.context(sub)
              :ok = :tame_nng.setopts(context, recv_buffer: 4096, subscribe: "")
              send(test, :subscribed)
              collect(context, 2000)
            end)
          end

        for _ <- subscribers, do: assert_receive(:subscribed)

        for n <- 1..2000 do
          :ok = :tame_nng.send(pub, <<n::32>>)
          if rem(n, 8) == 0, do: Process.sleep(:rand.uniform(2))
        end

        for task <- subscribers, do: assert(Task.await(task, 20_000) == Enum.to_list(1..2000))
        close([pub, sub])
      end

      test "a message that came when nobody waited any more is the next caller's", %{by: by} do
        {pub, sub} = pair(:pub0, :sub0, by: by)
        {:ok, context} = :tame_nng.context(sub)
        :ok = :tame_nng.setopts(context, subscribe: "")
        assert :tame_nng.recv(context, 10) == {:error, :timeout}
        for n <- 1..3, do: :ok = :tame_nng.send(pub, <<n>>)
        for n <- 1..3, do: assert(:tame_nng.recv(context, 5000) == {:ok, <<n>>})
        for ms <- [0, 10, 0], do: assert(:tame_nng.recv(context, ms) == {:error, :timeout})
        :ok = :tame_nng.send(pub, "last")
        assert until(fn -> :tame_nng.recv(context, 0) == {:ok, "last"} end)
        task = Task.async(fn -> :tame_nng.recv(context) end)
        assert until(fn -> waiting?(task.pid) end)
        assert :tame_nng.close(context) == :ok
        assert Task.await(task) == {:error, :closed}
        close([pub, sub])
      end

      test "subscriptions: each context has topics of its own", %{by: by} do
        {pub, sub} = pair(:pub0, :sub0, by: by)
        [a, b, none] = for _ <- 1..3, do: elem(:tame_nng.context(sub), 1)
        assert :tame_nng.setopts(sub, subscribe: "") == :ok
        assert :tame_nng.setopts(a, subscribe: "a", subscribe: "every") == :ok
        assert :tame_nng.setopts(b, recv_buffer: 10, prefer_new: false, subscribe: "") == :ok
        assert :tame_nng.setopts(b, unsubscribe: "", subscribe: ["b", "b"]) == :ok
        assert :tame_nng.setopts(b, subscribe: "every") == :ok
        for message <- ["a1", "b1", "bb2", "every"], do: :ok = :tame_nng.send(pub, message)
        for message <- ["a1", "every"], do: assert(:tame_nng.recv(a, 5000) == {:ok, message})
        for message <- ["bb2", "every"], do: assert(:tame_nng.recv(b, 5000) == {:ok, message})

        for message <- ["a1", "b1", "bb2", "every"],
            do: assert(:tame_nng.recv(sub, 5000) == {:ok, message})

        for context <- [a, b, none], do: assert(:tame_nng.recv(context, 10) == {:error, :timeout})
        assert :tame_nng.send(a, "x", 10) == {:error, :enotsup}
        assert :tame_nng.setopts(a, resend_time: 1) == {:error, :enotsup}
        assert :tame_nng.setopts(a, unsubscribe: "c") == {:error, :enoent}
        assert :tame_nng.setopts(a, recv_buffer: -1) == {:error, :einval}
        assert_raise ArgumentError, fn -> :tame_nng.setopts(a, active: true) end
        assert :tame_nng.close(a) == :ok
        assert :tame_nng.setopts(a, subscribe: "") == {:error, :closed}
        close([pub, sub])
        assert :tame_nng.setopts(b, subscribe: "") == {:error, :closed}
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

  # Until it is killed or the socket is closed; what it has waits, or has no time, or hardly any.
  defp asks(req, mode) do
    timeout = Enum.at([:infinity, 0, 1, 2], mode)

    case :tame_nng.request(req, "x", timeout) do
      {:error, :closed} -> :ok
      _ -> asks(req, mode)
    end
  end

  defp close(sockets) do
    for socket <- sockets, do: assert(:tame_nng.close(socket) == :ok)
    refute_received _
  end
end
