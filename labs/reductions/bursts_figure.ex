defmodule Tame.Reductions.BurstsFigure do
  @moduledoc "The bursts of the reductions lab as a figure of the report, a picture for each variant. Pure."

  alias Tame.Report.{Figure, Table, Threads, Words}

  @titles ["jobs at once", "a burst ms", "neighbour waited ms"]

  @doc "The figure, if there were bursts."
  @spec figures([map()]) :: [Figure.t()]
  def figures(rows) do
    case Enum.filter(rows, &(&1.status == "ok")) do
      [] -> []
      [first | _] = seen -> [figure(first, seen, rows)]
    end
  end

  @doc "The colours of the pictures, but for those that `known` has."
  @spec words([map()], [Tame.Report.Section.word()]) :: [Tame.Report.Section.word()]
  def words([], _known), do: []

  def words(rows, known) do
    names = for {_, name, _} <- known, do: name
    Enum.reject(Threads.words(rows), fn {_, name, _} -> name in names end)
  end

  @doc "Titles of `row/1` after the variant."
  @spec titles() :: [String.t()]
  def titles, do: @titles

  @doc "The figures of a variant as texts: the jobs of a burst, its length in the middle, the longest wait of the neighbour."
  @spec row(map()) :: [String.t()]
  def row(row) do
    [Integer.to_string(row.jobs) | Enum.map([row.burst_ms, row.held_ms], &Tame.Number.short/1)]
  end

  defp figure(first, seen, rows) do
    span = Threads.span(seen)

    %Figure{
      id: "bursts",
      title: "Burst after burst",
      caption: [
        "#{first.jobs} jobs at once on #{Words.bytes(first.bytes)} each, grey at the top, then a rest. Orange is a gap: the neighbour " <>
          "on scheduler 1 wanted to run and did not, for more than a millisecond. Below, the share of all cores that each " <>
          "kind of thread used, every #{Tame.CPU.sample_ms()} ms. All pictures are on one scale, and what is much longer than the " <>
          "others is cut off."
      ],
      columns: 2,
      panels:
        for {row, index} <- Enum.with_index(seen, 1) do
          %{
            id: "#{index}",
            title: row.id,
            note:
              "A burst took #{Words.time(row.burst_ms * 1000)}; the longest gap is #{Words.time(row.held_ms * 1000)}.",
            spec:
              Threads.chart("bursts of #{row.id}, the neighbour and the threads", row,
                span: span,
                title: "ms since the first burst"
              )
          }
        end,
      table: %Table{
        title: "Bursts, in numbers",
        columns: [{"variant", :code} | for(title <- @titles, do: {title, :number})],
        rows:
          for row <- rows do
            if row.status == "ok",
              do: [row.id | row(row)],
              else: [row.id, {:note, "#{row.status}: #{row.reason}"}]
          end
      }
    }
  end
end
