defmodule Tame.Nng.Test.Far do
  @moduledoc false
  # What tests call in another VM: a process there owns the socket.

  # A server that replies with what it was asked, twice; its address.
  def serve(by, url) do
    caller = self()

    pid =
      spawn(fn ->
        {:ok, rep} = :tame_nng.open(:rep0, by: by)
        {:ok, listener} = :tame_nng.listen(rep, url)
        {:ok, url} = :tame_nng.url(listener)
        send(caller, {self(), url})
        serve(rep)
      end)

    receive(do: ({^pid, url} -> {pid, url}))
  end

  defp serve(rep) do
    {:ok, bytes} = :tame_nng.recv(rep)
    :ok = :tame_nng.send(rep, [bytes, bytes])
    serve(rep)
  end

  # The library is loaded anew, and the old code purged, while messages go to and fro.
  def reload(by) do
    {:ok, a} = :tame_nng.open(:pair1, by: by)
    {:ok, b} = :tame_nng.open(:pair1, by: by)
    {:ok, _} = :tame_nng.listen(a, "inproc://reload")
    {:ok, _} = :tame_nng.dial(b, "inproc://reload", [:wait])
    {:ok, context_of} = :tame_nng.open(:req0, by: by)
    {:ok, context} = :tame_nng.context(context_of)
    asks = spawn(fn -> exit(:tame_nng.send(context, "x")) end)
    sender = spawn_link(fn -> for n <- 1..2000, do: :ok = :tame_nng.send(a, <<n::32>>) end)

    for n <- 1..2000 do
      if rem(n, 100) == 0 do
        {:module, _} = :code.load_file(:tame_nng_nif)
        :code.purge(:tame_nng_nif)
      end

      {:ok, <<^n::32>>} = :tame_nng.recv(b, 5000)
    end

    true = Process.alive?(asks) and not Process.alive?(sender)
    for socket <- [a, b, context_of], do: :ok = :tame_nng.close(socket)
    :done
  end
end
