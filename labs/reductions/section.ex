defmodule Tame.Reductions.Section do
  @moduledoc """
  What the reductions lab has to say in the report, from its result. Pure.

  The harm of each variant (its longest slice, and how late the neighbour woke) with the table of
  all, then the slices of each variant over time.
  """

  alias Tame.Reductions.{Charts, Format}
  alias Tame.Number
  alias Tame.Report.{Figure, Section, Table}

  @columns [
    {"variant", :code},
    {"what it is", :text},
    {"pages", :text} | for(title <- tl(Format.titles()), do: {title, :number})
  ]

  @doc "The section, from a result of the reductions lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    measured = Enum.filter(result.variants, &ok?/1)

    %Section{
      id: "reductions",
      title: "Reductions: what native work does to its neighbours",
      warnings: Enum.map(result.warnings, &Map.take(&1, [:id, :text])),
      intro: intro(result, measured),
      facts: [
        {"each of two inputs", Number.bytes(result.bytes)},
        {"turns of a variant", Integer.to_string(result.rounds)},
        {"order of turns", "shuffled, seed #{result.seed}"},
        {"neighbour at rest",
         "#{Number.short(result.floor.neighbour_p99_us)} µs late at p99, " <>
           "#{Number.short(result.floor.neighbour_max_us)} µs at most"},
        {"tracing", "#{result.floor.slice_cost_ns} ns a slice"}
      ],
      words: Charts.kinds(),
      figures: [harm(result.variants, measured) | over_time(measured)]
    }
  end

  defp intro(result, measured) do
    [
      "Each variant computes the same exclusive or of two binaries, twice in a VM of its own: on fresh pages, then with those " <>
        "at hand that the first call has left. Pictures are of the second call. The answer is checked. " <>
        "A second process on the same scheduler, the neighbour, wants to wake every millisecond. Slices are read from " <>
        "outside, by trace, and the neighbour's delay is counted from the moment at which it wanted to wake. " <>
        "#{length(measured)} of #{length(result.variants)} variants were measured."
    ] ++
      headline(measured) ++
      [
        "A slice is a stretch of time in which a process has a scheduler to itself. 1 ms is the budget that none may exceed; " <>
          "#{:tame_job_rates.slice_us()} µs is what a process in Erlang takes, and what tame takes by default."
      ]
  end

  defp headline(measured) do
    over = Enum.filter(measured, &(&1.longest_slice_us > 1000))

    cond do
      measured == [] ->
        []

      over == [] ->
        ["None held its scheduler for longer than the budget."]

      true ->
        [
          "Longer than the budget held their scheduler: " <>
            Enum.map_join(
              over,
              ", ",
              &"#{&1.id} (#{Number.short(&1.longest_slice_us / 1000)}\u00A0ms)"
            ) <>
            "."
        ]
    end
  end

  defp harm(variants, measured) do
    %Figure{
      id: "harm",
      title: "The longest slice, and how late the neighbour woke",
      caption: [
        "Where a slice and the neighbour lie together, the neighbour waited for that slice. Further right is worse, and each line of the grid is " <>
          "ten times the one before it."
        | not_drawn(Enum.reject(variants, &ok?/1))
      ],
      spec: if(measured != [], do: Charts.harm(measured)),
      table: %Table{title: "All variants", columns: @columns, rows: rows(variants, measured)}
    }
  end

  defp rows(variants, measured) do
    rows =
      for variant <- measured,
          line <- Format.lines(variant),
          do: [variant.id, variant.about | line]

    rows ++
      for variant <- variants, not ok?(variant) do
        [variant.id, variant.about, {:note, why(variant)}]
      end
  end

  # Ids may hold what an anchor may not, so the figures are numbered.
  defp over_time(measured) do
    for {%{picture: [_ | _]} = variant, index} <- Enum.with_index(measured, 1) do
      %Figure{
        id: "slices-#{index}",
        title: "Slices of #{variant.id} over time",
        caption: [
          "The run that had the longest slice. Each line is a slice, from its start to its end."
          | left_out(variant)
        ],
        spec: Charts.slices(variant)
      }
    end
  end

  defp left_out(%{left_out: 0}), do: []

  defp left_out(%{left_out: count, picture: picture}) do
    [
      "#{Number.grouped(length(picture))} of #{Number.grouped(count + length(picture))} slices are drawn: of each few in a row " <>
        "the longest. #{Number.grouped(count)} shorter ones are left out."
    ]
  end

  defp not_drawn([]), do: []

  defp not_drawn(missing) do
    ["Not drawn: " <> Enum.map_join(missing, "; ", &"#{&1.id}, #{why(&1)}") <> "."]
  end

  defp why(%{status: status, reason: nil}), do: status
  defp why(%{status: status, reason: reason}), do: "#{status}: #{reason}"

  defp ok?(variant), do: variant.status == "ok"
end
