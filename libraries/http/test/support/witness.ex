defmodule Tame.HTTP.Test.Witness do
  @moduledoc false
  # Another client, which asks for an answer again and again while a server is attacked: how long each took.

  alias Tame.HTTP.Test.Client

  # What `fun` returns, and the witness's times in ms, sorted. One answer that does not come ends the test.
  def during(port, fun) do
    test = self()
    witness = spawn_link(fn -> ask(Client.connect(port), test, []) end)
    value = fun.()
    send(witness, :enough)

    receive do
      {^witness, times} -> {value, Enum.sort(times)}
    after
      20_000 -> ExUnit.Assertions.flunk("another client has no answer any more")
    end
  end

  def p99(times), do: Enum.at(times, div(length(times) * 99, 100))

  defp ask(socket, test, times) do
    began = System.monotonic_time(:microsecond)
    :ok = :gen_tcp.send(socket, "GET /witness HTTP/1.1\r\nhost: a\r\n\r\n")
    {200, _, _} = Client.answer(socket)
    times = [(System.monotonic_time(:microsecond) - began) / 1000 | times]

    receive do
      :enough -> send(test, {self(), times})
    after
      2 -> ask(socket, test, times)
    end
  end
end
