defmodule Tame.Nng.BadInputTest do
  # Each says what is wrong, returns, and leaves nothing open.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets
  alias Tame.Nng.Test.{Far, Peer}

  test "what is no protocol, option, address, message or time, in a sentence" do
    {:ok, socket} = :tame_nng.open(:pair0)

    for {call, number, words} <- [
          {fn -> :tame_nng.open(:req) end, 1, "must be one of req0, rep0"},
          {fn -> :tame_nng.open("req0") end, 1, "must be one of"},
          {fn -> :tame_nng.open(:req0, by: :port) end, 2, "unknown option: {by,port}"},
          {fn -> :tame_nng.open(:req0, reconect_min: 1) end, 2,
           "unknown option: {reconect_min,1}"},
          {fn -> :tame_nng.open(:req0, [:active]) end, 2, "unknown option: active"},
          {fn -> :tame_nng.open(:req0, :none) end, 2, "unknown option: none"},
          {fn -> :tame_nng.dial(socket, "inproc://x", [:now]) end, 3, "must be [] or [wait]"},
          {fn -> :tame_nng.dial(socket, :inproc) end, 2, "must be an address"},
          {fn -> :tame_nng.listen(socket, [300]) end, 2, "must be an address"},
          {fn -> :tame_nng.send(socket, :x) end, 2, "must be iodata"},
          {fn -> :tame_nng.send(socket, "x", -1) end, 3, "must be infinity or ms"},
          {fn -> :tame_nng.recv(socket, 1.5) end, 2, "must be infinity or ms"},
          {fn -> :tame_nng.url(:listener) end, 1, "must be what listen/2 or dial/2 returned"}
        ] do
      assert sentence(call, number) =~ words
    end

    assert :tame_nng.close(socket) == :ok
  end

  test "handles that are none of ours" do
    {:ok, port} = :gen_tcp.listen(0, active: false)

    handles = [
      make_ref(),
      port,
      :socket,
      self(),
      nil,
      hd(Port.list()),
      :atomics.new(1, []),
      {:tame_nng_context, make_ref(), make_ref()},
      {:tame_nng_context, port, 1}
    ]

    calls = [
      &:tame_nng.recv(&1, 0),
      &:tame_nng.send(&1, "x", 0),
      &:tame_nng.send(&1, :binary.copy("x", 100_000), 0),
      &:tame_nng.close/1,
      &:tame_nng.listen(&1, "inproc://x"),
      &:tame_nng.setopts(&1, active: true),
      &:tame_nng.setopts(&1, ttl: 1),
      &:tame_nng.getstat/1,
      &:tame_nng.request(&1, "x", 0)
    ]

    for handle <- handles, call <- calls do
      assert sentence(fn -> call.(handle) end, 1) =~ "is no socket of tame_nng"
    end

    assert {:ok, _} = :inet.port(port)
    :gen_tcp.close(port)
  end

  for by <- [:nif, :driver] do
    describe "#{by}:" do
      @describetag by: by

      test "addresses that do not parse, are in use, or that nobody is at", %{by: by} do
        socket = open(:pair0, by: by)
        long = "ipc:///tmp/" <> String.duplicate("x", 200)

        for url <- ["", "x", "tcp://", "http://x", "tcp://127.0.0.1:99999", "tcp:\0//", long] do
          assert {:error, reason} = :tame_nng.listen(socket, url)
          assert reason in [:einval, :enotsup, :eaddrnotavail], inspect({url, reason})
          # Some addresses nng takes, and tries in the background.
          assert {result, _} = :tame_nng.dial(socket, url)
          assert result in [:ok, :error]
        end

        assert {:error, _} = :tame_nng.listen(socket, "ipc:///nowhere/at/all")
        assert :tame_nng.dial(socket, "tcp://127.0.0.1:1", [:wait]) == {:error, :econnrefused}
        assert :tame_nng.dial(socket, "inproc://nobody", [:wait]) == {:error, :econnrefused}
        assert {:error, _} = :tame_nng.dial(socket, "ipc:///tmp/nobody.here", [:wait])
        {:ok, gen_tcp} = :gen_tcp.listen(0, ip: :loopback)
        {:ok, port} = :inet.port(gen_tcp)
        assert :tame_nng.listen(socket, "tcp://127.0.0.1:#{port}") == {:error, :eaddrinuse}
        assert :tame_nng.close(socket) == :ok
      end

      test "a time that receive cannot wait for, and nothing waits then", %{by: by} do
        {a, b} = pair(:pair0, :pair0, by: by)
        long = 4_294_967_296
        assert sentence(fn -> :tame_nng.recv(a, long) end, 2) =~ "from 0 to 4294967295"
        assert sentence(fn -> :tame_nng.send(a, "x", long) end, 3) =~ "from 0 to 4294967295"
        reader = Task.async(fn -> :tame_nng.recv(a, long - 1) end)
        assert until(fn -> waiting?(reader.pid) end)
        assert :tame_nng.send(b, "x", 5000) == :ok
        assert Task.await(reader) == {:ok, "x"}
        for socket <- [a, b], do: assert(:tame_nng.close(socket) == :ok)
        req = open(:req0, by: by)
        assert sentence(fn -> :tame_nng.request(req, "x", long) end, 3) =~ "from 0 to 4294967295"
        assert :tame_nng.close(req) == :ok
      end

      test "options: of another protocol, of no such value", %{by: by} do
        socket = open(:pair0, by: by)
        assert :tame_nng.setopts(socket, resend_time: 5) == {:error, :enotsup}
        assert :tame_nng.setopts(socket, subscribe: "x") == {:error, :enotsup}
        assert :tame_nng.setopts(socket, recv_buffer: -1) == {:error, :einval}
        assert :tame_nng.setopts(socket, recv_buffer: 1_000_000_000_000) == {:error, :einval}
        assert :tame_nng.setopts(socket, nodelay: 1) == {:error, :einval}
        assert :tame_nng.setopts(socket, unknown: 1) == {:error, :einval}
        assert :tame_nng.setopts(socket, :none) == {:error, :einval}
        assert :tame_nng.getopts(socket, [:unknown]) == {:error, :einval}
        assert :tame_nng.getopts(socket, [:resend_time]) == {:error, :enotsup}

        set = [recv_buffer: 7, recv_max_size: 5000, reconnect_min: 20, nodelay: false]
        assert :tame_nng.setopts(socket, set) == :ok
        assert :tame_nng.getopts(socket, Keyword.keys(set)) == {:ok, set}
        assert :tame_nng.close(socket) == :ok
        req = open(:req0, by: by, resend_time: :infinity)
        assert :tame_nng.getopts(req, [:resend_time]) == {:ok, [resend_time: :infinity]}
        assert :tame_nng.close(req) == :ok
      end

      test "credit that no socket can have", %{by: by} do
        socket = open(:pull0, by: by)

        for active <- [-32_769, 32_768, 65_536, Bitwise.bsl(1, 70), 1.5, :twice] do
          assert {active, :tame_nng.setopts(socket, active: active)} ==
                   {active, {:error, :einval}}
        end

        assert :tame_nng.close(socket) == :ok
      end

      test "an end point that is none, or another socket's", %{by: by} do
        [a, b] = for _ <- 1..2, do: open(:pair0, by: by)
        {:ok, {:listener, _, id} = listener} = :tame_nng.listen(a, "tcp://127.0.0.1:0")
        {:ok, url} = :tame_nng.url(listener)
        {:ok, {:dialer, _, dialer}} = :tame_nng.dial(b, url)

        for call <- [&:tame_nng.url/1, &:tame_nng.hang_up/1] do
          for wrong <- [:foo, -1, 0, Bitwise.bsl(1, 32) + id] do
            assert sentence(fn -> call.({:listener, a, wrong}) end, 1) =~
                     "must be what listen/2 or dial/2 returned"
          end

          assert call.({:listener, b, id}) == {:error, :enoent}
          assert call.({:dialer, a, dialer}) == {:error, :enoent}
        end

        assert :tame_nng.url(listener) == {:ok, url}
        assert :tame_nng.url({:dialer, b, dialer}) == {:ok, url}
        assert :tame_nng.hang_up({:dialer, b, dialer}) == :ok
        assert :tame_nng.hang_up(listener) == :ok
        assert :tame_nng.hang_up(listener) == {:error, :enoent}
        for socket <- [a, b], do: assert(:tame_nng.close(socket) == :ok)
      end

      test "what is not its turn", %{by: by} do
        {rep, req} = pair(:rep0, :req0, by: by)
        assert :tame_nng.send(rep, "no request") == {:error, :estate}
        assert :tame_nng.recv(req) == {:error, :estate}
        :ok = :tame_nng.send(req, "x")
        {:ok, "x"} = :tame_nng.recv(rep, 5000)
        assert :tame_nng.send(rep, "y") == :ok
        assert :tame_nng.send(rep, "y again") == {:error, :estate}
        for socket <- [rep, req], do: assert(:tame_nng.close(socket) == :ok)
      end

      # In a VM of its own: as the connection ends nng 1.5 may hang, or, by push0, end the process (README, "Limits").
      test "a message that is too large ends the connection, and not the next message", %{by: by} do
        peer = Peer.start_link()
        assert Peer.call(peer, Far, :too_large, [by]) == {{:error, :timeout}, true}
      end

      test "protocols that do not go together: refused, counted, and nobody hangs", %{by: by} do
        pub = open(:pub0, by: by)
        req = open(:req0, by: by)
        url = listen(pub, :tcp)
        # The connection is there before nng knows what the peer speaks.
        assert {_, _} = :tame_nng.dial(req, url, [:wait])
        assert {:ok, _} = :tame_nng.dial(req, url)
        assert :tame_nng.send(req, "x", 50) == {:error, :timeout}
        assert until(fn -> refused(pub) + refused(req) > 0 end)
        for socket <- [pub, req], do: assert(:tame_nng.close(socket) == :ok)
      end
    end
  end

  defp refused(socket) do
    {:ok, %{refused: refused}} = :tame_nng.getstat(socket)
    refused
  end

  defp sentence(call, number) do
    call.()
    flunk("no error")
  rescue
    error in [ArgumentError, ErlangError] ->
      assert [{:tame_nng, _, _, _} | _] = __STACKTRACE__
      assert error.__struct__ == ArgumentError
      :tame_nng.format_error(:badarg, __STACKTRACE__)[number] || flunk(Exception.message(error))
  end
end
