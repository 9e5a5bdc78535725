defmodule Tame.Tcp.OptionsTest do
  # Options, names, files, and bad input: the terms that gen_tcp gives, or a sentence.
  use ExUnit.Case, async: false

  import Tame.Tcp.Test.Sockets

  test "options are the system's, and can be asked" do
    {client, _server} = pair(nodelay: true, keepalive: true, buffer: 1000)
    names = [:nodelay, :keepalive, :buffer, :active, :mode, :send_timeout, :linger]

    assert :tame_tcp.getopts(client, names) ==
             {:ok,
              nodelay: true,
              keepalive: true,
              buffer: 1000,
              active: false,
              mode: :binary,
              send_timeout: :infinity,
              linger: {false, 0}}

    assert :tame_tcp.setopts(client, nodelay: false, recbuf: 100_000, priority: 2) == :ok

    assert {:ok, nodelay: false, recbuf: bytes, priority: 2} =
             :tame_tcp.getopts(client, [:nodelay, :recbuf, :priority])

    assert bytes >= 100_000
    assert :tame_tcp.setopts(client, nodelay: :perhaps) == {:error, :einval}
    assert :tame_tcp.setopts(client, no_such: 1) == {:error, :einval}
    assert :tame_tcp.setopts(client, buffer: 0) == {:error, :einval}
    assert :tame_tcp.setopts(client, :none) == {:error, :einval}
    wrong = [:no_such, :"", :жук, :send_timeout_closed, :buffe, :send_timeout_close_and_more]
    assert :tame_tcp.getopts(client, wrong) == {:ok, []}
    for name <- wrong, do: assert(:tame_tcp_nif.getopt(client, name) == {:error, :einval})
    for name <- wrong, do: assert(:tame_tcp_nif.setopt(client, name, 1) == {:error, :einval})
    assert :tame_tcp.getstat(client, [:cnt]) == {:error, :einval}
  end

  test "the buffer bounds what a receive of any length returns" do
    {client, server} = pair(buffer: 1000)
    :ok = :tame_tcp.send(server, :binary.copy("x", 3000))
    assert {:ok, part} = :tame_tcp.recv(client, 0)
    assert byte_size(part) <= 1000
    assert {:ok, _} = :tame_tcp.recv(client, 3000 - byte_size(part))
    :ok = :tame_tcp.setopts(client, buffer: 200_000)
    :ok = :tame_tcp.send(server, :binary.copy("x", 150_000))
    assert {:ok, bytes} = :tame_tcp.recv(client, 150_000)
    assert byte_size(bytes) == 150_000
    assert :tame_tcp.recv(client, 64 * 1024 * 1024 + 1) == {:error, :enomem}
  end

  test "files are sent by their names and as raw files, whole and in part" do
    {client, server} = pair()
    path = Path.join(System.tmp_dir!(), "tame_tcp_#{System.unique_integer([:positive])}")
    bytes = :crypto.strong_rand_bytes(5_000_000)
    File.write!(path, bytes)
    on_exit(fn -> File.rm(path) end)
    before = descriptors()
    sender = Task.async(fn -> :tame_tcp.sendfile(client, path) end)
    assert :tame_tcp.recv(server, 5_000_000, 10_000) == {:ok, bytes}
    assert Task.await(sender) == {:ok, 5_000_000}
    {:ok, file} = :file.open(path, [:raw, :read, :binary])
    assert :tame_tcp.sendfile(client, file, 100, 50) == {:ok, 50}
    assert :tame_tcp.recv(server, 50) == {:ok, binary_part(bytes, 100, 50)}
    assert :tame_tcp.sendfile(client, file, 4_999_990, 50) == {:ok, 10}
    assert :tame_tcp.recv(server, 10) == {:ok, binary_part(bytes, 4_999_990, 10)}
    :ok = :file.close(file)
    assert {:error, _} = :tame_tcp.sendfile(client, file, 0, 0)
    assert :tame_tcp.sendfile(client, path <> ".none") == {:error, :enoent}
    assert {:error, _} = :tame_tcp.sendfile(client, System.tmp_dir!())
    assert :tame_tcp.sendfile(client, :none, -1, 0) == {:error, :einval}
    assert :tame_tcp.close(server) == :ok
    assert until(fn -> match?({:error, :closed}, :tame_tcp.sendfile(client, path)) end)
    :erlang.garbage_collect()
    assert until(fn -> descriptors() <= before end)
  end

  # IPPROTO_TCP, TCP_CONGESTION; SOL_SOCKET, SO_LINGER.
  test "raw options are the system's, as gen_tcp has them" do
    reno = {:raw, 6, 13, "reno"}
    {client, server} = pair()
    assert :tame_tcp.setopts(client, [reno]) == :ok
    {:ok, theirs} = :gen_tcp.listen(0, [reno])
    {:ok, [{:raw, 6, 13, value}]} = :inet.getopts(theirs, [{:raw, 6, 13, 16}])
    assert "reno" <> _ = value
    assert :tame_tcp.getopts(client, [{:raw, 6, 13, 16}]) == {:ok, [{:raw, 6, 13, value}]}
    {:ok, listening} = :tame_tcp.listen(0, [reno, {:active, false}])
    assert :tame_tcp.getopts(listening, [{:raw, 6, 13, 4}]) == {:ok, [{:raw, 6, 13, "reno"}]}
    assert :tame_tcp.setopts(client, [{:raw, 6, 13, "none of these"}]) == {:error, :enoent}
    assert :tame_tcp.setopts(client, [{:raw, 6, 13, 1}]) == {:error, :einval}

    assert :tame_tcp.setopts(client, [{:raw, 1, 13, <<1::native-32, 5::native-32>>}]) ==
             {:error, :einval}

    assert :tame_tcp.getopts(client, [{:raw, 6, 13, 5000}, :packet]) == {:ok, [packet: 0]}
    assert :tame_tcp.getopts(client, [{:raw, 6, -1, 4}, {:raw, :x, 1, 4}]) == {:ok, []}
    assert :tame_tcp.close(client) == :ok
    assert :tame_tcp.setopts(client, [reno]) == {:error, :closed}
    for socket <- [server, listening], do: :ok = :tame_tcp.close(socket)
    :gen_tcp.close(theirs)
  end

  describe "bad input" do
    test "says which argument, and what was expected" do
      assert sentence(fn -> :tame_tcp.listen(-1, []) end) =~
               "1st argument: must be a port from 0 to 65535"

      assert sentence(fn -> :tame_tcp.listen(-1, []) end) =~ ":tame_tcp.listen(-1, [])"

      assert sentence(fn -> :tame_tcp.listen(0, [:nonsense]) end) =~
               "2nd argument: has an unknown option: nonsense"

      assert sentence(fn -> :tame_tcp.listen(0, ip: {1, 2, 3}) end) =~
               "unknown option: {ip,{1,2,3}}"

      assert sentence(fn -> :tame_tcp.connect({1, 2, 3}, 1, []) end) =~
               "1st argument: must be an IP address"

      assert sentence(fn -> :tame_tcp.connect({1, 2, 3, 4}, 65_536, []) end) =~
               "2nd argument: must be a port"

      {listening, _} = listen()

      assert sentence(fn -> :tame_tcp.accept(listening, -1) end) =~
               "2nd argument: must be infinity or ms"
    end

    test "is badarg where there is no socket, and the system's word where it is none of that kind" do
      {client, server} = pair()
      {listening, port} = listen()

      for none <- [make_ref(), self(), :socket, 1] do
        assert_raise ArgumentError, fn -> :tame_tcp.recv(none, 0) end
        assert_raise ArgumentError, fn -> :tame_tcp.send(none, "x") end
        assert_raise ArgumentError, fn -> :tame_tcp.accept(none) end
        assert_raise ArgumentError, fn -> :tame_tcp.close(none) end
        assert_raise ArgumentError, fn -> :tame_tcp.peername(none) end
      end

      assert_raise ArgumentError, fn -> :tame_tcp.recv(client, -1) end
      assert :tame_tcp.recv(listening, 0) == {:error, :enotconn}
      assert :tame_tcp.accept(client) == {:error, :einval}
      assert :tame_tcp.peername(listening) == {:error, :enotconn}
      assert :tame_tcp.listen(port, ip: :loopback) == {:error, :eaddrinuse}
      assert :tame_tcp.listen(0, ip: {192, 0, 2, 1}) == {:error, :eaddrnotavail}
      assert :tame_tcp.connect({:local, "/no/such"}, 0, []) == {:error, :enoent}
      assert :tame_tcp.connect({:local, "/no/such"}, 1, []) == {:error, :eaddrnotavail}

      for path <- [:binary.copy("x", 200), ""] do
        assert :tame_tcp.connect({:local, path}, 0, []) == {:error, :einval}
        assert :tame_tcp.listen(0, ip: {:local, path}) == {:error, :einval}
      end

      assert :tame_tcp.close(server) == :ok
    end

    test "names the function that was called, and its argument" do
      {client, _server} = pair()
      none = make_ref()

      for {function, args} <- [
            accept: [none, 0],
            send: [none, "x"],
            recv: [none, 0, 0],
            sendfile: [none, "/etc/passwd", 0, 0],
            shutdown: [none, :read],
            close: [none],
            controlling_process: [none, self()],
            owner: [none],
            sockname: [none],
            peername: [none],
            setopts: [none, [nodelay: true]],
            getopts: [none, [:nodelay]],
            getstat: [none, [:recv_oct]]
          ] do
        said = sentence(fn -> apply(:tame_tcp, function, args) end)
        assert said =~ "1st argument: is no socket of tame_tcp"
        assert said =~ ":tame_tcp.#{function}("
      end

      assert sentence(fn -> :tame_tcp.recv(client, -1, 0) end) =~
               "2nd argument: must be a number of bytes"

      assert sentence(fn -> :tame_tcp.shutdown(client, :foo) end) =~
               "2nd argument: must be read, write or read_write"

      assert :tame_tcp.recv(client, Bitwise.bsl(1, 70), 0) == {:error, :enomem}
      far = Bitwise.bsl(1, 63)
      assert :tame_tcp.sendfile(client, "/etc/passwd", far, 0) == {:error, :einval}
      assert :tame_tcp.sendfile(client, "/etc/passwd", 0, far) == {:error, :einval}
      assert :tame_tcp.sendfile(client, "/etc/pass\0wd") == {:error, :einval}
      assert :tame_tcp.getopts(client, :foo) == {:error, :einval}
      assert :tame_tcp.getstat(client, :foo) == {:error, :einval}
      assert :tame_tcp.getopts(client, [{:raw, Bitwise.bsl(1, 40), 1, 4}]) == {:ok, []}
    end

    test "is an option of another type or size, by listen, connect and setopts" do
      {client, _server} = pair()
      {_, port} = listen()

      for {name, value} = option <- [
            send_timeout: false,
            send_timeout: -1,
            send_timeout: Bitwise.bsl(1, 32),
            send_timeout_close: 1,
            nodelay: 17,
            nodelay: :infinity,
            keepalive: {true, 1},
            linger: 0,
            linger: {true, -1},
            sndbuf: :infinity,
            tos: true,
            active: -32_769,
            active: 32_768,
            active: 65_536,
            active: Bitwise.bsl(1, 70)
          ] do
        assert {option, :tame_tcp.setopts(client, [option])} == {option, {:error, :einval}}

        for call <- [
              fn -> :tame_tcp.listen(0, [option]) end,
              fn -> :tame_tcp.connect(:loopback, port, [option]) end
            ] do
          said = sentence(call)
          assert said =~ "has an unknown option: {#{name},"
          assert said =~ if(is_integer(value), do: "#{value}", else: "")
        end
      end

      for option <- [
            {:backlog, Bitwise.bsl(1, 40)},
            {:raw, Bitwise.bsl(1, 40), 1, <<1>>},
            {:ip, {:local, :foo}}
          ] do
        assert sentence(fn -> :tame_tcp.listen(0, [option]) end) =~
                 "2nd argument: has an unknown option"
      end

      assert :tame_tcp.setopts(client, [{:raw, Bitwise.bsl(1, 40), 1, <<1>>}]) ==
               {:error, :einval}
    end
  end

  test "a send may have any time that a process can wait" do
    {client, _server} = pair()

    for ms <- [0, 86_400_000, 0xFFFFFFFF, :infinity] do
      assert :tame_tcp.setopts(client, send_timeout: ms) == :ok
      assert :tame_tcp.getopts(client, [:send_timeout]) == {:ok, send_timeout: ms}
    end
  end

  test "without the application, who asks for credit is told so, and no socket is left" do
    {listening, port} = listen(active: true)
    :ok = Application.stop(:tame_tcp)

    try do
      before = descriptors()

      assert sentence(fn -> :tame_tcp.connect(:loopback, port, []) end) =~
               "3rd argument: has credit, which needs the application tame_tcp"

      assert descriptors() == before

      assert sentence(fn -> :tame_tcp.accept(listening, 5000) end) =~
               "1st argument: has credit to give, which needs the application tame_tcp"

      assert descriptors() == before
      {:ok, client} = :tame_tcp.connect(:loopback, port, active: false)

      assert sentence(fn -> :tame_tcp.setopts(client, active: :once) end) =~
               "2nd argument: needs the application tame_tcp"
    after
      :ok = Application.start(:tame_tcp)
    end
  end

  test "without descriptors accept and connect say so, and go on when there are some" do
    {listening, port} = listen()
    peer = for _ <- 1..4, do: elem(:gen_tcp.connect({127, 0, 0, 1}, port, [:binary]), 1)
    set_limit = limits()
    set_limit.(descriptors() - 2)

    try do
      assert until(fn ->
               :tame_tcp.connect(:loopback, port, active: false) == {:error, :emfile}
             end)

      assert :tame_tcp.accept(listening, 5000) == {:error, :emfile}
    after
      set_limit.("")
    end

    assert {:ok, _} = :tame_tcp.accept(listening, 5000)
    for socket <- peer, do: :gen_tcp.close(socket)
  end

  # A program that is there before the limit is: none could be started under it.
  defp limits do
    script =
      "while read n; do prlimit --pid #{System.pid()} --nofile=${n:-$(ulimit -n)}: && echo set; done"

    shell = System.find_executable("sh")
    port = Port.open({:spawn_executable, shell}, [:binary, args: ["-c", script]])

    fn files ->
      Port.command(port, "#{files}\n")
      assert_receive {^port, {:data, "set\n"}}
    end
  end

  defp sentence(call) do
    call.()
    flunk("no exception")
  rescue
    error ->
      Exception.format(
        :error,
        Exception.blame(:error, error, __STACKTRACE__) |> elem(0),
        __STACKTRACE__
      )
  end
end
