defmodule Tame.Contention.Advice do
  @moduledoc """
  What the figures of a run advise, and whether they agree with the talk's recommendations. Pure.

  Only cells of up to 1000 jobs a scheduler count. A placement is judged by its worst cell: how late neighbours woke
  (p99) and how long a trivial dirty CPU NIF waited (p99). One that failed in a cell is not recommended, nor one that was
  compared with no other.
  """

  alias Tame.Contention.{Format, Verdict}

  # The talk's table ("Well-Behaved NIFs", 2017): the longest work of one job in µs, and the placement for it.
  @classes [
    {"up to 1 ms", 0, 1000, "inline"},
    {"up to 100 ms", 1000, 100_000, "yielding"},
    {"above 100 ms", 100_000, :infinity, "yielding_dirty"}
  ]

  @most 1000

  # The controls are no choice of an author, and drivers none of who writes a NIF.
  @not_a_choice ~w(erlang thousand_cuts driver_inline driver_async driver_dirty)

  # One run can tell delays apart that differ by this factor.
  @alike 2

  @typedoc "Waits are nil where none was measured; the score is `:infinity` where a cell failed."
  @type worst :: %{
          placement: String.t(),
          neighbour_us: nil | float(),
          dirty_us: nil | float(),
          score: float() | :infinity
        }

  @type row :: %{
          work: String.t(),
          talk: String.t(),
          talk_worst: nil | worst(),
          best: nil | worst(),
          alone: nil | worst(),
          verdict: :confirmed | :contradicted | :not_measured
        }

  @doc "For each class of work: the talk's choice, what it did here, and what did best here, or was measured alone."
  @spec table([map()]) :: [row()]
  def table(cells) do
    for {work, above, up_to, talk} <- @classes do
      worst = worst(cells, above, up_to)
      talk_worst = Enum.find(worst, &(&1.placement == talk))

      %{
        work: work,
        talk: talk,
        talk_worst: talk_worst,
        best: nil,
        alone: nil,
        verdict: verdict(talk_worst)
      }
      |> Map.merge(best(worst))
    end
  end

  @doc "The advice in words: what to use here, and what the talk said."
  @spec sentences(Tame.Contention.result()) :: [String.t()]
  def sentences(%{cells: cells} = result) do
    rows = Enum.filter(table(cells), &(&1.best || &1.alone))
    if rows == [], do: [], else: [here(rows), talk(rows) | busy_wait(result)]
  end

  defp here(rows) do
    "On this machine: " <>
      Enum.map_join(rows, "; ", fn
        %{work: work, best: nil, alone: alone} ->
          "for work #{work} only #{alone.placement} was measured, which is compared with nothing (#{waits(alone)})"

        %{work: work, best: best} ->
          "for work #{work} use #{best.placement} (#{waits(best)})"
      end) <> "."
  end

  defp waits(%{neighbour_us: neighbour_us, dirty_us: nil}),
    do:
      "neighbours late by #{Verdict.time(neighbour_us)} at p99 in the worst cell, dirty work not measured"

  defp waits(%{neighbour_us: neighbour_us, dirty_us: dirty_us}) do
    "neighbours late by #{Verdict.time(neighbour_us)} at p99, dirty work by #{Verdict.time(dirty_us)}, in the worst cell"
  end

  defp talk(rows) do
    "The talk's advice: " <>
      Enum.map_join(rows, "; ", fn row ->
        "#{row.talk} for work #{row.work} is #{verdict_text(row)}"
      end) <> "."
  end

  @doc "A row's verdict in words."
  @spec verdict_text(row()) :: String.t()
  def verdict_text(%{verdict: :not_measured, talk_worst: nil}), do: "not measured"
  def verdict_text(%{verdict: :not_measured}), do: "not measured: a cell failed"

  def verdict_text(%{verdict: :confirmed} = row) do
    "confirmed" <> if(better?(row), do: ", though #{row.best.placement} does better", else: "")
  end

  def verdict_text(%{verdict: :contradicted, talk_worst: worst} = row) do
    dirty = if us = worst.dirty_us, do: "by #{Verdict.time(us)}", else: "was not measured"

    "contradicted: neighbours were late by #{Verdict.time(worst.neighbour_us)}, dirty work #{dirty}" <>
      if(row.best && row.best.placement == row.talk, do: ", and nothing else did better", else: "")
  end

  defp better?(%{best: nil}), do: false
  defp better?(%{best: best, talk_worst: worst}), do: worst.score > @alike * best.score

  # Nothing waited for a second or more.
  defp verdict(worst) when worst == nil or worst.score == :infinity, do: :not_measured

  defp verdict(worst) do
    if Verdict.level(worst.score) == :red, do: :contradicted, else: :confirmed
  end

  # Busy-waiting threads take a core from those that have work.
  defp busy_wait(%{calm: %{cell: cell, without_busy_wait: calm}}) do
    [
      "Busy waiting: beside #{Format.name(cell)} neighbours were late by #{Verdict.time(cell.neighbour_p99_us)} at p99 with the flags of " <>
        "this run, and by #{Verdict.time(calm.neighbour_p99_us)} with #{Enum.join(Tame.Peer.no_busy_wait(), " ")}; threads that wait busily " <>
        "outnumber the cores. Where work off the schedulers is the rule, try those flags."
    ]
  end

  defp busy_wait(%{flags: []}), do: []
  defp busy_wait(%{flags: flags}), do: ["These are figures with #{Enum.join(flags, " ")}."]

  # The best of two or more; an atom is above all numbers.
  defp best(worst) do
    case Enum.reject(worst, &(&1.placement in @not_a_choice)) do
      [] ->
        %{}

      [%{score: :infinity}] ->
        %{}

      [alone] ->
        %{alone: alone}

      all ->
        all
        |> Enum.min_by(& &1.score)
        |> then(&if &1.score == :infinity, do: %{}, else: %{best: &1})
    end
  end

  # Each placement's worst cell of a class, in the order of the cells. One that was tried in none is left out.
  defp worst(cells, above, up_to) do
    cells =
      Enum.filter(cells, fn cell ->
        cell.multiplier <= @most and cell.duration_us > above and
          (up_to == :infinity or cell.duration_us <= up_to)
      end)

    for placement <- cells |> Enum.map(& &1.placement) |> Enum.uniq(),
        own = Enum.filter(cells, &(&1.placement == placement)),
        Enum.any?(own, &Map.get(&1, :tried?, true)) do
      neighbour_us = most(own, :neighbour_p99_us)
      dirty_us = most(own, :dirty_cpu_wait_p99_us)
      failed? = Enum.any?(own, &(&1.neighbour_p99_us == nil))

      %{
        placement: placement,
        neighbour_us: neighbour_us,
        dirty_us: dirty_us,
        score: if(failed?, do: :infinity, else: max(neighbour_us, dirty_us || neighbour_us))
      }
    end
  end

  defp most(cells, key),
    do: cells |> Enum.map(& &1[key]) |> Enum.filter(&is_number/1) |> Enum.max(fn -> nil end)
end
