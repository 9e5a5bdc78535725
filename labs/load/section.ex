defmodule Tame.Load.Section do
  @moduledoc """
  What the load lab has to say in the report, from its result. Pure.

  How late hello is answered by placement; each placement over time; what a request costs; the rates that placements hold.
  """

  alias Tame.{Duration, Number}
  alias Tame.Load.{Charts, Format, Verdict}
  alias Tame.Report.{Figure, Finding, Section, Table, Words}

  # The warnings that concern the cells; the others are about the whole lab.
  @of_cells ~w(client_late hello_lost counts_disagree)

  @doc "The section, from a result of the load lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    shown = shown(result.cells)
    findings = findings(result, shown)

    %Section{
      id: "load",
      name: "Load",
      title: "Load: what a server answers while its handlers call native code",
      findings: findings,
      conclusion:
        Enum.uniq(for(%{answer: answer} <- findings, do: answer) ++ beside(result, shown)) ++
          Verdict.claim(result),
      warnings: Section.warnings(result, :but, @of_cells),
      intro: intro(),
      facts: facts(result),
      words: Charts.words(),
      figures: latencies(result, shown) ++ times(shown) ++ capacity(result) ++ limits(result),
      tables: numbers(result.cells)
    }
  end

  defp intro do
    [
      "Each cell starts a server in a VM of its own. One client asks for jobs at a fixed rate, whether or not the server keeps up; " <>
        "another one asks for hello all the time, which does nothing. Times are counted from when a request was planned, so a " <>
        "server that stands still is seen in every request that was planned meanwhile."
    ]
  end

  defp facts(result) do
    [
      {"server", "#{result.server}, #{result.protocol}"},
      {"jobs",
       "#{result.load_percent} % of the time of #{result.cores} cores, for #{Duration.text(1000 * result.for_ms)}"},
      {"hello", "#{result.hello_rate} a second"},
      {"client of the open loop",
       "#{result.open_client}: #{Number.grouped(round(result.ceiling.answered_per_s))} answers/s at most, " <>
         "#{Number.short(result.ceiling.client_us_per_request)} µs of CPU each"},
      {"client of the closed loop", result.closed_client || "none"},
      {"order of turns", "shuffled, seed #{result.seed}"}
    ]
  end

  # The same job in every placement, so that they can be compared.
  defp shown(cells) do
    us = Verdict.shown_us(cells)
    Enum.filter(cells, &(&1.job_us == us and &1.hello_p99_us != nil))
  end

  # ---- the first screen --------------------------------------------------------------------------

  # The rates where they were looked for, which is what a server is built for.
  defp findings(%{limits: []} = result, shown) do
    for answer <- beside(result, shown), do: Finding.new("load", answer, Charts.answer(shown))
  end

  defp findings(%{limits: limits} = result, _shown),
    do: [Finding.new("load", rates(limits, result.bound_us), Charts.held(limits))]

  defp rates([limit | _] = limits, bound_us) do
    by_rate =
      limits
      |> Enum.group_by(& &1.held_per_s, & &1.placement)
      |> Map.delete(nil)
      |> Enum.sort(:desc)

    none = for %{held_per_s: nil, placement: placement} <- limits, do: placement

    least =
      limits
      |> Enum.filter(&(&1.held_per_s == nil))
      |> Enum.map(& &1.overload.rate)
      |> Enum.min(fn -> nil end)

    [
      "With jobs of #{Words.time(limit.job_us)} hello stays within #{Words.time(bound_us)} (its p99) "
    ] ++
      Enum.intersperse(
        for {rate, names} <- by_rate do
          {:strong, "up to #{Number.grouped(rate)} jobs a second beside #{Words.list(names)}"}
        end ++
          if(none == [],
            do: [],
            else: [{:strong, "not even at #{Number.grouped(least)} beside #{Words.list(none)}"}]
          ),
        ", "
      ) ++ ["."]
  end

  # How late hello was beside the cells that are shown, in one sentence.
  defp beside(_result, []), do: []

  defp beside(result, [cell | _] = shown) do
    [
      [
        "With jobs of #{Words.time(cell.job_us)} at #{result.load_percent}\u00A0% of what the cores can do, hello "
        | sentence(shown)
      ]
    ]
  end

  defp sentence(shown) do
    [{first, names} | rest] =
      for level <- [:dead, :slow, :alive],
          cells = Enum.filter(shown, &(Verdict.level(&1) == level)),
          cells != [],
          do:
            {level,
             Words.list(
               Enum.map(
                 cells,
                 &"#{&1.placement} (#{Words.time(&1.hello_p99_us)}#{Verdict.lost_text(&1)})"
               )
             )}

    [verb(first, shown), {:strong, names}] ++
      Enum.flat_map(rest, fn {level, names} -> [", ", verb(level, shown), {:strong, names}] end) ++
      [" (its p99)."]
  end

  defp verb(:alive, _shown), do: "is answered at once beside "

  defp verb(level, shown) do
    lost? = Enum.any?(shown, &(Verdict.level(&1) == level and Verdict.lost?(&1)))
    slow = if level == :dead, do: "takes a second or more", else: "is slow"
    slow <> if(lost?, do: ", or has no answer, beside ", else: " beside ")
  end

  # ---- hello -------------------------------------------------------------------------------------

  defp latencies(%{cells: []}, _shown), do: []

  defp latencies(result, shown) do
    [
      %Figure{
        id: "hello",
        title: "How late hello is answered",
        caption:
          ["#{of(shown)} Each line of the grid is ten times the one before it."] ++
            for(%{status: status} = cell when status != "ok" <- result.cells, do: ended(cell)),
        warnings: Section.warnings(result, :only, @of_cells),
        spec: if(shown != [], do: Charts.latencies(shown)),
        table: table(result.cells)
      }
    ]
  end

  defp ended(%{status: "died"} = cell), do: "The server #{cell.reason}: #{Format.name(cell)}."
  defp ended(cell), do: "Not measured: #{Format.name(cell)}, #{cell.reason}."

  # The talk's table: placements by lengths of a job.
  defp table(cells) do
    jobs = cells |> Enum.map(& &1.job_us) |> Enum.uniq() |> Enum.sort()

    %Table{
      title: "hello's p99, by placement and length of a job",
      open: true,
      columns: [{"placement", :code} | Enum.map(jobs, &{job(&1), :kind})],
      rows:
        for placement <- cells |> Enum.map(& &1.placement) |> Enum.uniq() do
          [
            placement
            | for(
                us <- jobs,
                do: dot(Enum.find(cells, &(&1.placement == placement and &1.job_us == us)))
              )
          ]
        end
    }
  end

  defp job(0), do: "no job"
  defp job(us), do: Duration.text(us)

  defp dot(nil), do: nil
  defp dot(%{status: "died"}), do: {:dot, Charts.level_colour(:dead), "died"}
  defp dot(%{hello_p99_us: nil} = cell), do: cell.status

  defp dot(cell),
    do: {:dot, Charts.level_colour(Verdict.level(cell)), Duration.short(cell.hello_p99_us)}

  # All of a cell's figures are too many for the width of a page.
  defp numbers([]), do: []

  defp numbers(cells) do
    titles = Format.figure_titles()
    {hello, jobs} = Format.answers()

    for {title, part} <- [
          {"Hello, all cells in numbers", &Enum.take(&1, hello)},
          {"Jobs, all cells in numbers", &Enum.slice(&1, hello, jobs)},
          {"Cores, all cells in numbers", &Enum.drop(&1, hello + jobs)}
        ] do
      %Table{
        title: title,
        columns: [{"cell", :code} | titles |> part.() |> Enum.map(&{&1, :number})],
        rows: for(cell <- cells, do: [Format.name(cell) | cell |> Format.figures() |> part.()])
      }
    end
  end

  defp of([]), do: "No cell was measured."
  defp of([cell | _]), do: "Cells with jobs of #{Duration.text(cell.job_us)}."

  # ---- over time ---------------------------------------------------------------------------------

  defp times(shown) do
    case Enum.filter(shown, &(&1.intervals != [])) do
      [] ->
        []

      drawn ->
        scale = Charts.scale(drawn)

        [
          %Figure{
            id: "time",
            title: "What was answered, how late, and which threads used the cores",
            caption: [
              of(drawn) <>
                " The dashed line is the first job. All pictures are on one scale; a bar of the schedulers' lanes is as high as " <>
                "its share of all cores."
            ],
            columns: 2,
            panels:
              for {cell, index} <- Enum.with_index(drawn, 1) do
                %{
                  id: "#{index}",
                  title: cell.placement,
                  note: note(cell),
                  spec: Charts.time(cell, scale)
                }
              end
          }
        ]
    end
  end

  defp note(cell) do
    "#{Number.grouped(cell.job_answered)} of #{Number.grouped(cell.job_planned)} jobs answered, #{Number.grouped(cell.job_refused)} refused" <>
      case cell.recovered_ms do
        nil ->
          "; hello was not back to normal while it was looked at."

        ms when ms < 1 ->
          "; hello was normal as soon as the last one was asked for."

        ms ->
          "; hello was back to normal #{Words.time(ms * 1000)} after the last one was asked for."
      end
  end

  # ---- capacity and limits -----------------------------------------------------------------------

  defp capacity(%{capacity: []}), do: []

  defp capacity(result) do
    measured = Enum.filter(result.capacity, &(&1.us_per_request != nil))

    [
      %Figure{
        id: "capacity",
        title: "What a request for hello costs",
        caption:
          [
            "As many requests as the server answers, in a closed loop. Compare the CPU of a request; requests a second depend on the " <>
              "client too, which runs on the same cores."
          ] ++
            for(
              %{status: "failed"} = row <- result.capacity,
              do: "Not measured: #{Charts.name(row)}, #{row.reason}."
            ),
        spec: if(measured != [], do: Charts.capacity(measured)),
        table: %Table{
          title: "CPU of a request, in µs",
          columns: [
            {"server", :code},
            {"protocol", :text} | for(t <- Enum.drop(Format.capacity_titles(), 2), do: {t, :number})
          ],
          rows: Enum.map(result.capacity, &Format.capacity_row/1)
        }
      }
    ]
  end

  defp limits(%{limits: []}), do: []

  defp limits(result) do
    [
      %Figure{
        id: "limits",
        title: "The rate that each placement holds",
        caption: [
          "The rate of jobs is doubled until hello's p99 is above #{Duration.text(result.bound_us)}, more than 1 % of hello has no answer, or jobs are answered slower than they are asked for."
        ],
        table: %Table{
          title: "Rates that were held, and twice as much",
          open: true,
          columns: [
            {"placement", :code},
            {"job", :text}
            | for(title <- Enum.drop(Format.limit_titles(), 2), do: {String.trim(title), :number})
          ],
          rows: Enum.map(result.limits, &Format.limit_row/1)
        }
      }
    ]
  end
end
