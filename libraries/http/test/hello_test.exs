defmodule Tame.HTTP.HelloTest do
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client

  test "HTTP/1.1 and HTTP/2 by prior knowledge, one port" do
    {server, port} =
      start(handler: fn r -> {200, [{"x-version", to_string(r.version)}], "hello"} end)

    for {flag, version} <- [{"--http1.1", "HTTP/1.1"}, {"--http2-prior-knowledge", "HTTP/2"}] do
      {output, 0} = curl([flag, "-i", url(port)])
      assert output =~ "x-version: #{version}"
      assert output =~ ~r/hello$/
    end

    assert %{requests: 2, answered: 2, connections_total: 2} = balanced(server)
  end

  for run <- [:process, :acceptor] do
    test "many at once, in batches, all answered: #{run}" do
      {server, port} = start(run: unquote(run))

      for arguments <- [["-m", "10"], ["--h1"]] do
        {output, 0} = System.cmd("h2load", ["-n", "20000", "-c", "50", url(port) | arguments])
        assert output =~ "20000 succeeded, 0 failed"
      end

      info = balanced(server)
      assert info.answered == 40_000
      assert info.batches < info.answered
    end
  end

  test "a child of a supervisor, by name" do
    options = %{name: :tame_http_child, handler: &hello/1}

    {:ok, supervisor} =
      Supervisor.start_link([:tame_http.child_spec(options)], strategy: :one_for_one)

    assert {200, _, "hello"} = get(:tame_http.port(:tame_http_child))
    assert %{answered: 1} = :tame_http.info(:tame_http_child)
    :ok = Supervisor.stop(supervisor)
    assert_raise ArgumentError, fn -> :tame_http.port(:tame_http_child) end
  end

  test "stop closes the port, and start says what is wrong with one that is taken" do
    {server, port} = start(%{})

    assert {:error, {:listen, :eaddrinuse, _}} =
             :tame_http.start(%{port: port, handler: &hello/1})

    :ok = :tame_http.stop(server)
    assert {:error, :econnrefused} = :gen_tcp.connect({127, 0, 0, 1}, port, [])
  end

  test "a wrong option is named, with what was expected" do
    assert {:error, {:bad_option, :port, text}} =
             :tame_http.start(%{port: 70_000, handler: &hello/1})

    assert text == "got 70000, expected a number from 0 to 65535"

    assert {:error, {:bad_option, :handler, "missing, expected a fun of arity 1"}} =
             :tame_http.start(%{})

    assert {:error, {:bad_option, :prot, text}} = :tame_http.start(%{prot: 1, handler: &hello/1})
    assert text =~ "port"
    assert {:error, {:bad_option, :ip, _}} = :tame_http.start(%{ip: :any, handler: &hello/1})
    assert_raise ArgumentError, ~r/must be a map of options/, fn -> :tame_http.start([]) end
    assert_raise ArgumentError, ~r/must be a server that runs/, fn -> :tame_http.port(self()) end
  end
end
