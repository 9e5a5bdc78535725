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

  # The driver goes when nobody has it loaded and its last port is closed, and comes back.
  def unload do
    :ok = :logger.set_primary_config(:level, :none)
    {:ok, a} = :tame_nng.open(:pair0, by: :driver)
    {:ok, b} = :tame_nng.open(:pair0, by: :driver)
    {:ok, _} = :tame_nng.listen(a, "inproc://unload")
    {:ok, _} = :tame_nng.dial(b, "inproc://unload", [:wait])
    :ok = Application.stop(:tame_nng)
    :ok = :tame_nng.send(a, "still there", 5000)
    {:ok, "still there"} = :tame_nng.recv(b, 5000)
    true = ~c"tame_nng_drv" in loaded()
    for socket <- [a, b], do: :ok = :tame_nng.close(socket)
    true = Tame.Nng.Test.Sockets.until(fn -> ~c"tame_nng_drv" not in loaded() end)

    for _ <- 1..3 do
      {:ok, c} = :tame_nng.open(:rep0, by: :driver)
      {:ok, _} = :tame_nng.listen(c, "inproc://unload")
      {:error, :timeout} = :tame_nng.recv(c, 5)
      :ok = :tame_nng.close(c)
      :ok = :erl_ddll.unload(~c"tame_nng_drv")
      true = Tame.Nng.Test.Sockets.until(fn -> ~c"tame_nng_drv" not in loaded() end)
    end

    :done
  end

  defp loaded, do: elem(:erl_ddll.loaded_drivers(), 1)

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
