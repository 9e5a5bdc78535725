defmodule Tame.Calibrate.Costs do
  @moduledoc """
  What this machine's ways out of a scheduler cost, measured in some 50 ms.
  """

  alias Tame.{Stats, Turns}

  @typedoc "What a call costs more than the same in one go on the caller's scheduler, in ns."
  @type t :: %{
          hop: non_neg_integer(),
          dirty_hop: non_neg_integer(),
          pool: non_neg_integer(),
          thread: non_neg_integer()
        }

  # Calls of each kind in a turn, and turns.
  @turn_calls 20
  @turns 21

  # Each way with the way that it is compared with.
  @ways [hop: :inline, dirty_hop: :inline, pool: :inline_job, thread: :inline_job]

  @doc "The cost of one hop, and of the way to a dirty CPU scheduler, the pool or a thread and back."
  @spec measure(Turns.seed()) :: t()
  def measure(seed) do
    kinds = [
      inline: &:tame_echo_nif.echo/1,
      hop: &:tame_echo_nif.echo_yielding/1,
      dirty_hop: &:tame_echo_nif.echo_dirty_cpu/1,
      inline_job: &:tame_echo.echo_inline/1,
      pool: &:tame_echo.echo_pool/1,
      thread: &:tame_echo.echo_thread/1
    ]

    # The kinds take turns, so that what disturbs the machine hits all alike.
    turns =
      for order <- Turns.rounds(kinds, @turns, seed) do
        for {kind, echo} <- order, do: {kind, turn_ns(echo)}
      end

    medians = for {kind, _} <- kinds, do: {kind, turns |> Enum.map(& &1[kind]) |> Stats.median()}

    # On a disturbed machine the difference may come out below nothing.
    for {way, base} <- @ways, into: %{}, do: {way, max(0, medians[way] - medians[base])}
  end

  @doc """
  The call length, in µs, at which yielding after each default slice costs as much as moving the call there: shorter calls are
  cheaper yielding, longer ones moved.

      iex> Tame.Calibrate.Costs.break_even_us(%{hop: 500, dirty_hop: 5000, pool: 10_000, thread: 50_000})
      %{dirty_hop: 1000, pool: 2000, thread: 10_000}
  """
  @spec break_even_us(t()) :: %{atom() => non_neg_integer()}
  def break_even_us(%{hop: hop_ns} = costs) do
    slice_us = :tame_job_rates.slice_us()
    for {way, ns} <- costs, way != :hop, into: %{}, do: {way, div(ns * slice_us, max(1, hop_ns))}
  end

  defp turn_ns(echo) do
    started = System.monotonic_time(:nanosecond)
    calls(echo, @turn_calls)
    div(System.monotonic_time(:nanosecond) - started, @turn_calls)
  end

  defp calls(_echo, 0), do: :ok

  defp calls(echo, count) do
    _ = echo.(:echo)
    calls(echo, count - 1)
  end
end
