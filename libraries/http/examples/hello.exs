# Hello, and CPU work in a pool: the digest of what is sent to /sha3.
#
#     mix run --no-halt examples/hello.exs [PORT]
#     curl http://127.0.0.1:8080/
#     curl --data-binary @FILE http://127.0.0.1:8080/sha3
port =
  case System.argv() do
    [port] -> String.to_integer(port)
    [] -> 8080
  end

handler = fn
  # A job of tame.h: long inputs leave the scheduler, and its deadline is the server's patience.
  %{path: "/sha3", body: body} ->
    {200, %{}, [Base.encode16(:tame_sha3.hash(:sha3_256, body)), "\n"]}

  %{path: "/"} ->
    {200, %{}, "hello\n"}

  _ ->
    {404, %{}, "not found\n"}
end

{:ok, server} =
  Tame.HTTP.start(port: port, handler: handler, static: %{"/health" => {200, %{}, "fine\n"}})

IO.puts("http://127.0.0.1:#{Tame.HTTP.port(server)}/ , /sha3 and /health")
