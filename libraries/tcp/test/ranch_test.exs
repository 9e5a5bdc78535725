defmodule Tame.Tcp.RanchTest do
  # cowboy on tame_tcp, unchanged: Debian's cowboy 2.8 and ranch 2.1, asked by gen_tcp and by curl.
  use ExUnit.Case, async: false

  alias Tame.Tcp.Test.Hello
  import Tame.Tcp.Test.Sockets

  @compile {:no_warn_undefined, [:cowboy_router, :ranch]}
  @moduletag :cowboy
  @cowboy (case System.cmd(Path.expand("../../tools/cowboy"), [], stderr_to_stdout: true) do
             {path, 0} -> String.trim(path)
             {why, _} -> IO.puts("skip: cowboy: " <> String.trim(why)) && nil
           end)

  # cowboy's application needs ssl, also where no listener has TLS.
  @missing for {what, false} <- [
                 {"OTP's ssl", is_list(:code.lib_dir(:ssl))},
                 {"curl", System.find_executable("curl") != nil}
               ],
               do: what

  if @missing != [], do: IO.puts("skip: cowboy: there is no #{Enum.join(@missing, ", no ")}")

  @moduletag skip: @cowboy == nil or @missing != []

  setup_all do
    for name <- ~w(cowboy cowlib ranch), do: add(Path.wildcard("#{@cowboy}/#{name}-*/ebin"))
    {:ok, _} = Application.ensure_all_started(:cowboy)
    before = descriptors()
    dispatch = :cowboy_router.compile([{:_, [{"/[...]", Hello, []}]}])

    transport = %{socket_opts: [port: 0, ip: :loopback], num_acceptors: 10}
    protocol = %{env: %{dispatch: dispatch}, connection_type: :supervisor}
    {:ok, _} = :ranch.start_listener(:hello, :tame_tcp_ranch, transport, :cowboy_clear, protocol)
    on_exit(fn -> :ok = :ranch.stop_listener(:hello) end)
    %{port: :ranch.get_port(:hello), before: before}
  end

  defp add([path]), do: Code.append_path(path)

  test "answers curl, also a large body both ways", %{port: port} do
    assert curl(["http://127.0.0.1:#{port}/hello"]) == "hello from tame_tcp\n"
    assert byte_size(curl(["http://127.0.0.1:#{port}/large"])) == 10_000_000
    path = Path.join(System.tmp_dir!(), "tame_tcp_body_#{System.pid()}")
    File.write!(path, :binary.copy("x", 3_000_000))
    on_exit(fn -> File.rm(path) end)
    assert curl(["--data-binary", "@#{path}", "http://127.0.0.1:#{port}/count"]) == "3000000\n"
    assert curl(["http://127.0.0.1:#{port}/file"]) == File.read!("mix.exs")
  end

  test "keeps connections alive, many at once, and leaves none", context do
    clients =
      for _ <- 1..50 do
        Task.async(fn ->
          {:ok, socket} = :gen_tcp.connect({127, 0, 0, 1}, context.port, [:binary, active: false])

          for _ <- 1..20 do
            :ok = :gen_tcp.send(socket, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n")
            {:ok, answer} = :gen_tcp.recv(socket, 0, 10_000)
            assert answer =~ "200 OK" and answer =~ "hello from tame_tcp"
          end

          :gen_tcp.close(socket)
        end)
      end

    Task.await_many(clients, 60_000)
    assert until(fn -> :ranch.procs(:hello, :connections) == [] end)
    # The listening one is left.
    assert until(fn -> descriptors() <= context.before + 1 end)
  end

  defp curl(arguments) do
    {answer, 0} = System.cmd("curl", ["-sS", "--fail", "--max-time", "20" | arguments])
    answer
  end
end
