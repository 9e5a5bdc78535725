defmodule Tame.Latency.Methods.Port do
  @moduledoc """
  An OS process on standard input and output: `tame_echo` behind a port with `{:packet, 4}`.

  The VM copies what goes out into one buffer and what comes in into another, and its poll thread
  wakes a scheduler for the answer. What does not fit into a pipe is written and read in turns; so
  `tame_echo` passes bytes on before a frame is complete, and asks for pipes of 1 MiB, which Linux
  grants. A program that does neither takes twice as long for 64 KiB.
  """

  use Tame.Latency.Method,
    id: :port,
    isolation: :process,
    data_type: "external term format",
    context_switch: "OS process, pipe"

  alias Tame.Latency.Peer

  @impl true
  def open do
    with {:ok, peer} <- Peer.open(program(), ["stdio"], packet: 4) do
      # The first answer shows that the program runs.
      :hello = echo(peer, :hello)
      {:ok, Peer.hold_stdin(peer)}
    end
  end

  @doc "The path of `tame_echo`, which the socket methods use too."
  def program, do: List.to_string(:tame_labs_native.path(~c"tame_echo"))

  # An answer has no reference, and needs none: a call that was sent always waits for its
  # answer or for the end of the program, so no answer is ever left for the next call.
  @impl true
  def echo(%Peer{port: port} = peer, term) do
    try do
      :erlang.port_command(port, :erlang.term_to_binary(term))
    rescue
      ArgumentError -> Peer.ended!(peer)
    end

    receive do
      {^port, {:data, data}} ->
        :erlang.binary_to_term(data)

      {^port, {:exit_status, _}} = message ->
        send(self(), message)
        Peer.ended!(peer)
    end
  end

  @impl true
  def close(peer), do: Peer.close(peer)
end
