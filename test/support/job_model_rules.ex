defmodule Tame.JobModel.Rules do
  @moduledoc """
  What has to become of calls of `Tame.JobModel`, without a process and without a clock: a call needs a place at its gate,
  then its context, and has both until it ends; who waits for either comes first come, first served.
  """

  alias Tame.JobModel

  defstruct calls: %{}, gates: %{}, things: %{}

  @doc """
  A call begins: `%{gate: gate | nil, thing: thing | :none, work: work}`. Its status is then `:gate` or `:thing`, for which
  it waits, `{:runs, parts}`, or `{:ended, how}`.
  """
  def arrive(state, ticket, call) do
    state = put_in(state.calls[ticket], Map.put(call, :status, :new))
    {running, waiting} = gate(state, call)

    cond do
      running < max_running(call) -> admit(state, ticket)
      length(waiting) < JobModel.max_waiting() -> wait(state, ticket, :gate)
      true -> status(state, ticket, {:ended, {:error, {:tame, :busy}}})
    end
  end

  defp max_running(%{gate: nil}), do: :infinity
  defp max_running(_), do: JobModel.max_running()

  defp gate(_, %{gate: nil}), do: {0, []}
  defp gate(state, %{gate: gate}), do: Map.get(state.gates, gate, {0, []})

  defp thing(state, %{thing: thing}), do: Map.get(state.things, thing, {nil, []})

  defp admit(state, ticket) do
    call = state.calls[ticket]
    {running, waiting} = gate(state, call)
    state = put_in(state.gates[call.gate], {running + 1, waiting}) |> status(ticket, :placed)

    case thing(state, call) do
      _ when call.thing == :none ->
        begin(state, ticket)

      {nil, []} ->
        put_in(state.things[call.thing], {ticket, []}) |> begin(ticket)

      {_, waiting} ->
        if call.gate != nil and length(waiting) >= JobModel.max_waiting(),
          do: leave(state, ticket, {:error, {:tame, :busy}}),
          else: wait(state, ticket, :thing)
    end
  end

  defp wait(state, ticket, what) do
    call = state.calls[ticket]

    case what do
      :gate -> update_in(state.gates[call.gate], fn {n, waiting} -> {n, waiting ++ [ticket]} end)
      :thing -> update_in(state.things[call.thing], fn {t, waiting} -> {t, waiting ++ [ticket]} end)
    end
    |> status(ticket, what)
  end

  defp begin(state, ticket) do
    case state.calls[ticket] do
      %{work: :refuse} -> leave(state, ticket, {:error, :badarg})
      %{work: parts} when is_integer(parts) -> status(state, ticket, {:runs, 1})
      _ -> status(state, ticket, {:runs, 0})
    end
  end

  @doc "A stream's caller wants one more part."
  def pull(state, ticket) do
    case state.calls[ticket] do
      %{status: {:runs, parts}, work: parts} -> leave(state, ticket, :done)
      %{status: {:runs, part}} -> status(state, ticket, {:runs, part + 1})
    end
  end

  @doc "A call that waits or runs ends, in whatever way: its context goes to the first who waits, then its place."
  def leave(state, ticket, how) do
    call = state.calls[ticket]
    placed = call.status != :gate

    state
    |> status(ticket, {:ended, how})
    |> leave_thing(ticket, call)
    |> leave_gate(ticket, call, placed)
  end

  defp leave_thing(state, _, %{thing: :none}), do: state

  defp leave_thing(state, ticket, call) do
    case thing(state, call) do
      {^ticket, []} ->
        put_in(state.things[call.thing], {nil, []})

      {^ticket, [next | waiting]} ->
        put_in(state.things[call.thing], {next, waiting}) |> begin(next)

      {holder, waiting} ->
        put_in(state.things[call.thing], {holder, List.delete(waiting, ticket)})
    end
  end

  defp leave_gate(state, ticket, call, placed) do
    case gate(state, call) do
      {running, [next | waiting]} when placed ->
        put_in(state.gates[call.gate], {running - 1, waiting}) |> admit(next)

      {running, []} when placed ->
        put_in(state.gates[call.gate], {running - 1, []})

      {running, waiting} ->
        put_in(state.gates[call.gate], {running, List.delete(waiting, ticket)})
    end
  end

  @doc "The tickets of the calls with such a status, in the order in which they came."
  def tickets(state, which) do
    for {ticket, %{status: status} = call} <- Enum.sort_by(state.calls, &elem(&1, 0)),
        which.(status, call),
        do: ticket
  end

  defp status(state, ticket, status), do: put_in(state.calls[ticket].status, status)
end
