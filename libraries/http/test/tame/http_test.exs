defmodule Tame.HTTPTest do
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client, only: [get: 2]
  alias Tame.HTTP.Conn

  defmodule Greeter do
    import Tame.HTTP.Conn
    def init(greeting), do: greeting

    def call(%{path_info: ["nothing"]} = conn, _), do: conn

    def call(conn, greeting) do
      body = [greeting, " ", conn.path_info, " ", get_req_header(conn, "host"), conn.query_string]
      conn |> put_resp_header("x-a", "1") |> put_resp_header("x-a", "2") |> send_resp(201, body)
    end
  end

  test "a module with init/1 and call/2, in a supervisor" do
    options = [name: :tame_http_plug, ip: {127, 0, 0, 1}, plug: {Greeter, "good day"}]
    start_supervised!({Tame.HTTP, options})
    port = Tame.HTTP.port(:tame_http_plug)
    assert {201, head, "good day you ac=d"} = get(port, "/you?c=d")
    assert length(String.split(head, "x-a: 2")) == 2
    refute head =~ "x-a: 1"
    # It has sent nothing.
    assert {500, _, ""} = get(port, "/nothing")
    assert %{answered: 2} = Tame.HTTP.info(:tame_http_plug)
  end

  test "a header of the answer is one of its name, and the host has no port" do
    conn = %Conn{resp_headers: [{"X-A", "1"}, {"x-b", "2"}, {"x-a", "3"}]}
    assert Conn.put_resp_header(conn, "x-A", "4").resp_headers == [{"x-b", "2"}, {"x-A", "4"}]

    for {host, bare} <- [
          {"a.b:80", "a.b"},
          {"a.b", "a.b"},
          {"[::1]:80", "[::1]"},
          {"[::1]", "[::1]"}
        ] do
      request = %{
        peer: {{1, 2, 3, 4}, 5},
        method: "GET",
        path: "/",
        query: "",
        scheme: :http,
        body: ""
      }

      assert Conn.from(Map.put(request, :headers, [{"host", host}])).host == bare
    end
  end

  test "a plug that is none is told in a line" do
    for {options, text} <- [
          {[plug: "x"], "expected a module or {module, argument}, got: \"x\""},
          {[plug: {Greeter, 1, 2}], "expected a module"},
          {[plug: NoSuchModule], "NoSuchModule has no function init/1"},
          {[plug: Greeter, handler: &{200, %{}, &1}], "two answers"}
        ] do
      raised = assert_raise ArgumentError, fn -> Tame.HTTP.start(options) end
      assert raised.message =~ text
    end
  end

  test "each function of tame_http that is about a server has one of the same name here" do
    for {name, arity} <- Tame.HTTP.__info__(:functions),
        do: assert(function_exported?(:tame_http, name, arity), "#{name}/#{arity}")
  end
end
