defmodule Tame.Contention.Section do
  @moduledoc """
  What the contention lab has to say in the report, from its result. Pure.

  The talk's table in colour, how late neighbours woke by placement with the figures of all cells, utilisation over time
  of each placement on one scale, what to use here, and whether the talk's recommendations hold.
  """

  alias Tame.Contention.{Advice, Charts, Format, Verdict}
  alias Tame.{Duration, Number}
  alias Tame.Report.{Figure, Finding, Section, Table, Threads, Words}

  # The picture of a placement is that of its cell with this duration, or the next shorter one, and this multiplier,
  # or the largest.
  @picture_us 100_000
  @picture_multiplier 100

  # The warning that concerns single cells.
  @of_tables ~w(killed)

  @doc "The section, from a result of the contention lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    shown = shown(result.cells)
    findings = findings(shown)

    %Section{
      id: "contention",
      name: "Contention",
      title: "Contention: what native work does to everybody else",
      findings: findings,
      conclusion:
        for(%{answer: answer} <- findings, do: answer) ++ Enum.take(Advice.sentences(result), 1),
      warnings: Section.warnings(result, :but, @of_tables),
      intro: intro(),
      facts: facts(result),
      words: Charts.words() ++ Threads.words(Enum.map(shown, &seen/1)),
      figures:
        table(result) ++
          delays(result.cells, shown) ++ pictures(result.cells, shown) ++ recommendations(result)
    }
  end

  defp intro do
    [
      "Each cell floods a VM of its own with jobs of one placement and one length, a number of them at once for each scheduler. A neighbour on " <>
        "each scheduler wants to wake every 10 ms, and a process asks for a trivial dirty CPU NIF every 100 ms."
    ]
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

  # ---- the first screen --------------------------------------------------------------------------

  defp findings([]), do: []

  defp findings([cell | _] = shown) do
    [Finding.new("flood", answer(cell, shown), Charts.answer(shown))]
  end

  # Who waited for a second, how long the others did, and dirty work.
  defp answer(cell, shown) do
    {starved, others} = Enum.split_with(shown, &(Verdict.level(&1.neighbour_max_us) == :red))

    [
      "In a flood of #{cell.multiplier} jobs of #{Duration.text(cell.duration_us)} for each scheduler "
    ] ++
      starved(starved) ++ others(others, starved) ++ dirty(shown)
  end

  defp starved([]), do: [{:strong, "no process"}, " goes without CPU for a second."]

  defp starved(cells) do
    names = for cell <- worst_first(cells, :neighbour_max_us), do: waited(cell, :neighbour_max_us)

    ["a process gets no CPU for a second or more beside ", {:strong, Words.list(names)}, "."]
  end

  defp others([], _starved), do: []

  defp others(cells, starved) do
    worst = cells |> worst_first(:neighbour_max_us) |> hd() |> waited(:neighbour_max_us)

    if starved == [],
      do: [" It waits longest beside #{worst}."],
      else: [" Of the others it waits longest beside #{worst}."]
  end

  defp dirty(cells) do
    waiting = Enum.filter(cells, &(Verdict.level(&1.dirty_cpu_wait_max_us) in [:yellow, :red]))

    case for cell <- worst_first(waiting, :dirty_cpu_wait_max_us),
             do: waited(cell, :dirty_cpu_wait_max_us) do
      [] ->
        []

      names ->
        [" Dirty work waits longest beside ", {:strong, hd(names)}, "."]
    end
  end

  defp worst_first(cells, key), do: Enum.sort_by(cells, &(-&1[key]))
  defp waited(cell, key), do: "#{cell.placement} (#{Words.time(cell[key])})"

  # ---- the talk's table --------------------------------------------------------------------------

  # The durations beside each other, so that all of it is seen at once.
  defp table(%{cells: cells} = result) do
    case Format.grid(cells) do
      [] ->
        []

      [{_, _, rows} | _] = grid ->
        columns =
          for {duration_us, multipliers, _} <- grid, m <- multipliers do
            {"#{Duration.text(duration_us)} #{m}×", :kind}
          end

        [
          %Figure{
            id: "table",
            title: "Who waits, and for how long",
            caption: [
              "By placement, length of a job, and jobs at once for each scheduler: for how long a neighbour got no CPU, with a plus sign from a second on, and behind “dirty” how long a trivial " <>
                "dirty CPU NIF waited, where that is longer than 100 ms. … means that the flood was stopped at the cell's limit."
            ],
            warnings: Section.warnings(result, :only, @of_tables),
            table: %Table{
              title: "Who waits",
              open: true,
              columns: [{"placement", :code} | columns],
              rows: for({placement, _} <- rows, do: [placement | across(grid, placement)])
            }
          }
        ]
    end
  end

  defp across(grid, placement) do
    for {_, _, rows} <- grid, {^placement, cells} <- rows, cell <- cells, do: cell(cell)
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
        table: figures(cells, "The waits of all cells, in numbers", &Enum.take(&1, waits()))
      }
    ]
  end

  # All of a cell's figures are too many for the width of a page.
  defp figures(cells, title, part) do
    %Table{
      title: title,
      columns: [{"cell", :code} | Format.figure_titles() |> part.() |> Enum.map(&{&1, :number})],
      rows: Enum.map(cells, &row(&1, part))
    }
  end

  defp row(%{neighbour_max_us: nil} = cell, _part) do
    [Format.name(cell), {:note, "#{cell.status}: #{cell.reason}"}]
  end

  defp row(cell, part), do: [Format.name(cell) | cell |> Format.figures() |> part.()]

  # The waits come first; what the jobs did begins with their longest slice.
  defp waits, do: Enum.find_index(Format.figure_titles(), &(&1 == "longest slice µs"))

  defp of([]), do: "No cell was measured."

  defp of([cell | _]) do
    "Cells of #{Duration.text(cell.duration_us)}, #{cell.multiplier} jobs for each scheduler."
  end

  defp pictures(cells, shown) do
    case Enum.filter(shown, &(&1.cpu != [])) do
      [] ->
        []

      drawn ->
        span = Threads.span(Enum.map(drawn, &seen/1))

        [
          %Figure{
            id: "utilisation",
            title: "Which threads used the cores, and who waited",
            caption: [
              of(drawn) <>
                " Each bar is #{Tame.CPU.sample_ms()} ms, or a multiple in a long cell, and as high as its share of all cores. Orange above " <>
                "them is the time for which a neighbour that wanted to run did not; the dashed line is where the flood " <>
                "begins. All pictures are on one scale, and what is much longer than the others is cut off."
            ],
            columns: 2,
            panels:
              for {cell, index} <- Enum.with_index(drawn, 1) do
                %{
                  id: "#{index}",
                  title: cell.placement,
                  note: busy(cell),
                  spec:
                    Threads.chart("threads beside #{cell.placement}", seen(cell),
                      span: span,
                      title: "ms since the flood began",
                      marks: [0]
                    )
                }
              end,
            table: figures(cells, "The jobs of all cells, in numbers", &Enum.drop(&1, waits()))
          }
        ]
    end
  end

  # Its bursts are a number, of which nobody knows when they were.
  defp seen(cell), do: Map.take(cell, [:cpu, :held])

  defp busy(cell) do
    "Schedulers: normal #{percent(cell.normal_utilisation)}, dirty CPU #{percent(cell.dirty_cpu_utilisation)} busy. Other threads " <>
      "used #{percent(cell.other_cpu)} of all cores."
  end

  defp percent(nil), do: "unknown"
  defp percent(share), do: "#{round(100 * share)}\u00A0%"

  # ---- the talk's recommendations ----------------------------------------------------------------

  defp recommendations(%{cells: cells} = result) do
    case Advice.sentences(result) do
      [] ->
        []

      [_here | sentences] ->
        [
          %Figure{
            id: "advice",
            title: "What “Well-Behaved NIFs” (2017) recommends, tried here",
            caption: sentences,
            table: %Table{
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
          }
        ]
    end
  end

  defp recommendation(row) do
    worst = row.talk_worst || %{neighbour_us: nil, dirty_us: nil}

    [
      row.work,
      row.talk,
      worst.neighbour_us && Number.short(worst.neighbour_us / 1000),
      worst.dirty_us && Number.short(worst.dirty_us / 1000),
      Advice.verdict_text(row),
      row.best && row.best.placement
    ]
  end
end
