# A server, and many processes that ask it over one socket: mix run examples/requests.exs
defmodule Requests do
  # Several processes reply, each in a context of its own.
  def serve(rep) do
    {:ok, context} = :tame_nng.context(rep)
    serve_in(context)
  end

  defp serve_in(context) do
    {:ok, question} = :tame_nng.recv(context)
    :ok = :tame_nng.send(context, String.upcase(question))
    serve_in(context)
  end
end

{:ok, rep} = :tame_nng.open(:rep0)
{:ok, listener} = :tame_nng.listen(rep, "tcp://127.0.0.1:0")
{:ok, url} = :tame_nng.url(listener)
for _ <- 1..4, do: spawn(fn -> Requests.serve(rep) end)

{:ok, req} = :tame_nng.open(:req0, by: :driver)
{:ok, _} = :tame_nng.dial(req, url)

["to be", "or not", "to be"]
|> Enum.map(fn question ->
  Task.async(fn -> :tame_nng.request(req, question, 5000) end)
end)
|> Enum.each(fn task ->
  {:ok, answer} = Task.await(task)
  IO.puts(answer)
end)
