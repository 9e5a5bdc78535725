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

  alias Tame.Latency.Program

  @impl true
  def open do
    with {:ok, program} <- Program.open(program(), ["stdio"], packet: 4) do
      # The first answer shows that the program runs.
      :hello = echo(program, :hello)
      {:ok, Program.hold_stdin(program)}
    end
  end

  @doc "The path of `tame_echo`, which the socket methods use too."
  def program, do: List.to_string(:tame_labs_native.path(~c"tame_echo"))

  # An answer has no reference, and needs none: a call that was sent always waits for its
  # answer or for the end of the program, so no answer is ever left for the next call.
  @impl true
  def echo(%Program{port: port} = program, term) do
    try do
      :erlang.port_command(port, :erlang.term_to_binary(term))
    rescue
      ArgumentError -> Program.ended!(program)
    end

    receive do
      {^port, {:data, data}} ->
        :erlang.binary_to_term(data)

      {^port, {:exit_status, _}} = message ->
        send(self(), message)
        Program.ended!(program)
    end
  end

  @impl true
  def close(program), do: Program.close(program)
end
