defmodule Tame.Contention.Section do
  @moduledoc """
  What the contention lab has to say in the report, from its result. Pure.

  The talk's tables in colour, how late neighbours woke by placement, utilisation over time of each placement, what to
  use here, and whether the talk's recommendations hold.
  """

  alias Tame.Contention.{Advice, Charts, Format, Verdict}
  alias Tame.{Duration, Number}
  alias Tame.Report.{Figure, Section, Table}

  # The picture of a placement is that of its cell with this duration, or the next shorter one, and this multiplier,
  # or the largest.
  @picture_us 100_000
  @picture_multiplier 100

  @doc "The section, from a result of the contention lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    shown = shown(result.cells)

    %Section{
      id: "contention",
      title: "Contention: what native work does to everybody else",
      warnings: Enum.map(result.warnings, &Map.take(&1, [:id, :text])),
      intro: intro(result),
      facts: facts(result),
      words: Charts.words(),
      figures: tables(result.cells) ++ delays(result.cells, shown) ++ pictures(shown),
      tables: recommendations(result.cells)
    }
  end

  defp intro(result) do
    [
      "Each cell floods a VM of its own with jobs of one placement and one length, a number of them at once for each scheduler. A neighbour on " <>
        "each scheduler wants to wake every 10 ms; a cell of the tables says for how long it got no CPU, with a plus sign " <>
        "from a second on, and behind “dirty” how long a trivial dirty CPU NIF waited, where that is longer than 100 ms. " <>
        "… means that the flood was stopped at the cell's limit."
    ] ++ Advice.sentences(result)
  end

  defp facts(%{empty: empty, facts: facts} = result) do
    [
      {"cells", Integer.to_string(length(result.cells))},
      {"schedulers there", "#{facts.schedulers}, #{facts.dirty_cpu_schedulers} dirty CPU"},
      {"its flags", if(result.flags == [], do: "none", else: Enum.join(result.flags, " "))}
      | if(empty.busy_cores,
          do: [
            {"observers", "#{Number.short(100 * empty.busy_cores)} % of a core"},
            {"neighbour at rest",
             "#{Number.short(empty.neighbour_p99_us / 1000)} ms late at p99, " <>
               "#{Number.short(empty.neighbour_max_us / 1000)} ms at most"}
          ],
          else: []
        )
    ]
  end

  # ---- the talk's tables -------------------------------------------------------------------------

  defp tables(cells) do
    for {duration_us, multipliers, rows} <- Format.grid(cells) do
      text = Duration.text(duration_us)

      %Figure{
        id: "table-#{duration_us}",
        title: "Jobs of #{text}",
        caption: ["For how long a neighbour got no CPU, by placement and jobs for each scheduler."],
        table: %Table{
          title: "Jobs of #{text}",
          columns: [{"placement", :code} | Enum.map(multipliers, &{"#{&1}×", :kind})],
          rows: for({placement, cells} <- rows, do: [placement | Enum.map(cells, &cell/1)])
        }
      }
    end
  end

  defp cell(nil), do: nil

  defp cell(cell),
    do: {:dot, Charts.level_colour(Verdict.worse_level(cell)), Verdict.cell_text(cell)}

  # ---- pictures ----------------------------------------------------------------------------------

  # The same cell of every placement, so that pictures can be compared.
  defp shown(cells) do
    cells = Enum.filter(cells, & &1.neighbour_max_us)
    durations = Enum.map(cells, & &1.duration_us)

    duration_us =
      durations
      |> Enum.filter(&(&1 <= @picture_us))
      |> Enum.max(fn -> Enum.min(durations, fn -> 0 end) end)

    here = Enum.filter(cells, &(&1.duration_us == duration_us))
    multipliers = Enum.map(here, & &1.multiplier)

    multiplier =
      if @picture_multiplier in multipliers,
        do: @picture_multiplier,
        else: Enum.max(multipliers, fn -> 0 end)

    Enum.filter(here, &(&1.multiplier == multiplier))
  end

  defp delays(cells, shown) do
    [
      %Figure{
        id: "delays",
        title: "How late neighbours woke",
        caption: [of(shown) <> " Each line of the grid is ten times the one before it."],
        spec: if(shown != [], do: Charts.delays(shown)),
        table: %Table{
          title: "All cells",
          columns: [{"cell", :code} | Enum.map(Format.figure_titles(), &{&1, :number})],
          rows: Enum.map(cells, &row/1)
        }
      }
    ]
  end

  defp row(%{neighbour_max_us: nil} = cell) do
    [Format.name(cell), {:note, "#{cell.status}: #{cell.reason}"}]
  end

  defp row(cell), do: [Format.name(cell) | Format.figures(cell)]

  defp of([]), do: "No cell was measured."

  defp of([cell | _]) do
    "Cells of #{Duration.text(cell.duration_us)}, #{cell.multiplier} jobs for each scheduler."
  end

  defp pictures(shown) do
    for %{samples: [_ | _]} = cell <- shown do
      %Figure{
        id: "utilisation-#{String.replace(cell.placement, "_", "-")}",
        title: "Utilisation beside #{cell.placement}",
        caption: [
          "Jobs of #{Duration.text(cell.duration_us)}, #{cell.multiplier} for each scheduler. Normal schedulers upward, dirty CPU " <>
            "schedulers downward, each bar from one sample to the next; the dashed line is where the flood begins." <>
            gaps(cell)
        ],
        spec: Charts.utilisation(cell)
      }
    end
  end

  defp gaps(cell) do
    case Enum.count(cell.samples, & &1.gap) do
      0 -> ""
      1 -> " One sample came late, which is a grey gap."
      count -> " #{count} samples came late, which are grey gaps."
    end
  end

  # ---- the talk's recommendations ----------------------------------------------------------------

  defp recommendations(cells) do
    [
      %Table{
        title: "The talk's recommendations on this machine, worst cells of up to 1000×",
        columns: [
          {"work", :text},
          {"the talk says", :code},
          {"neighbour p99 ms", :number},
          {"dirty CPU p99 ms", :number},
          {"here", :text},
          {"best here", :code}
        ],
        rows: Enum.map(Advice.table(cells), &recommendation/1)
      }
    ]
  end

  defp recommendation(%{talk_worst: nil} = row) do
    [row.work, row.talk, nil, nil, Advice.verdict_text(row), row.best && row.best.placement]
  end

  defp recommendation(%{talk_worst: worst} = row) do
    [
      row.work,
      row.talk,
      Number.short(worst.neighbour_us / 1000),
      Number.short(worst.dirty_us / 1000),
      Advice.verdict_text(row),
      row.best.placement
    ]
  end
end
