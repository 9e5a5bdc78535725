defmodule Tame.Reductions.Section do
  @moduledoc """
  What the reductions lab has to say in the report, from its result. Pure.

  The harm of each variant (its longest slice, and how late the neighbour woke) with the table of
  all, then the slices of each variant over time, on one scale, and its bursts.
  """

  alias Tame.Reductions.{BurstsFigure, Charts, Format}
  alias Tame.Number
  alias Tame.Report.{Figure, Finding, Section, Table, Words}

  @columns [
    {"variant", :code},
    {"pages", :text} | for(title <- tl(Format.titles()), do: {title, :number})
  ]

  # For the first screen: the job that ships with tame in each of its placements, in words.
  @placements [
    {"exor_inline", "inline"},
    {"exor_yielding", "yielding"},
    {"exor_dirty", "dirty CPU"},
    {"exor_yielding_dirty", "yielding dirty"},
    {"exor_pool", "pool"},
    {"exor", "auto"}
  ]

  # The warning that concerns the whole lab; the others are about the neighbour's figures and slices.
  @of_section ~w(one_scheduler)

  @budget_us 1000

  @doc "The section, from a result of the reductions lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    measured = Enum.filter(result.variants, &ok?/1)

    findings = findings(result, measured)

    %Section{
      id: "reductions",
      name: "Reductions",
      title: "Reductions: what native work does to its neighbours",
      findings: findings,
      conclusion: for(%{answer: answer} <- findings, do: answer) ++ conclusion(measured),
      warnings: Section.warnings(result, :only, @of_section),
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
      words: Charts.kinds() ++ BurstsFigure.words(result.bursts, Charts.kinds()),
      figures: [harm(result, measured) | over_time(measured)] ++ BurstsFigure.figures(result.bursts)
    }
  end

  defp findings(result, measured) do
    named =
      for {id, name} <- @placements,
          variant = Enum.find(measured, &(&1.id == id)),
          variant.neighbour_max_us != nil,
          do: {variant, name}

    case Enum.sort_by(named, fn {variant, _} -> -variant.neighbour_max_us end) do
      [] ->
        []

      [{worst, name} | others] = named ->
        answer = [
          "A job on #{Words.bytes(result.bytes)} keeps a process on its scheduler waiting for ",
          {:strong, Words.time(worst.neighbour_max_us)},
          " #{as(name)}" | rest(others)
        ]

        [Finding.new("job", answer, Charts.answer(named))]
    end
  end

  defp rest([]), do: ["."]

  defp rest(others) do
    {middle, [{best, name}]} = Enum.split(others, -1)

    for {variant, name} <- middle do
      ", #{Words.time(variant.neighbour_max_us)} #{as(name)}"
    end ++
      [" and ", {:strong, Words.time(best.neighbour_max_us)}, " #{as(name)}."]
  end

  defp as("pool"), do: "in a pool"
  defp as("auto"), do: "where auto puts it"
  defp as("dirty CPU"), do: "on a dirty scheduler"
  defp as("yielding dirty"), do: "in slices on a dirty scheduler"
  defp as("yielding"), do: "in slices"
  defp as(name), do: name

  defp conclusion(measured) do
    {over, within} = Enum.split_with(measured, &(&1.longest_slice_us > @budget_us))

    cond do
      measured == [] ->
        ["No variant was measured."]

      over == [] ->
        ["None held its scheduler for longer than the budget of 1\u00A0ms."]

      true ->
        longest = Enum.sort_by(over, &(-&1.longest_slice_us))

        [
          "Longer than the budget of 1\u00A0ms a scheduler was held by " <>
            Words.list(for v <- longest, do: "#{v.id} (#{Words.time(v.longest_slice_us)})") <>
            if(within == [], do: ".", else: "; not by #{Words.list(Enum.map(within, & &1.id))}.")
        ]
    end
  end

  defp intro(result, measured) do
    [
      "Each variant computes the same exclusive or of two binaries, twice in a VM of its own: on fresh pages, then with those " <>
        "at hand that the first call has left. Pictures are of the second call. The answer is checked. " <>
        "A second process on the same scheduler, the neighbour, wants to wake every millisecond. Slices are read from " <>
        "outside, by trace, and the neighbour's delay is counted from the moment at which it wanted to wake. " <>
        "#{length(measured)} of #{length(result.variants)} variants were measured.",
      "A slice is a stretch of time in which a process has a scheduler to itself. 1 ms is the budget that none may exceed; " <>
        "#{:tame_job_rates.slice_us()} µs is what a process in Erlang takes, and what tame takes by default."
    ]
  end

  defp harm(%{variants: variants} = result, measured) do
    %Figure{
      id: "harm",
      title: "The longest slice, and how late the neighbour woke",
      caption: [
        "Where a slice and the neighbour lie together, the neighbour waited for that slice. Further right is worse, and each line of the grid is " <>
          "ten times the one before it."
        | not_drawn(Enum.reject(variants, &ok?/1))
      ],
      warnings: Section.warnings(result, :but, @of_section),
      spec: if(measured != [], do: Charts.harm(measured)),
      table: %Table{
        title: "All variants, in numbers",
        columns: @columns,
        rows: rows(variants, measured)
      }
    }
  end

  defp rows(variants, measured) do
    rows =
      for variant <- measured,
          line <- Format.lines(variant),
          do: [variant.id | line]

    rows ++
      for variant <- variants, not ok?(variant) do
        [variant.id, {:note, "#{variant.about}; #{why(variant)}"}]
      end
  end

  defp over_time(measured) do
    case Enum.filter(measured, &(&1.picture != [])) do
      [] -> []
      drawn -> [slices(drawn, Charts.scale(drawn))]
    end
  end

  # Ids may hold what an anchor may not, so the panels are numbered.
  defp slices(drawn, scale) do
    %Figure{
      id: "slices",
      title: "Slices over time",
      caption: [
        "The run of each variant that had the longest slice, all on one scale. Each line is a slice, from its start to its " <>
          "end, at the height of its length; the dashed lines are #{:tame_job_rates.slice_us()} µs and 1 ms."
      ],
      panels:
        for {variant, index} <- Enum.with_index(drawn, 1) do
          %{
            id: "#{index}",
            title: variant.id,
            note: Enum.join([variant.about <> ":", took(variant, scale) | left_out(variant)], " "),
            spec: Charts.slices(variant, scale)
          }
        end
    }
  end

  defp took(variant, scale) do
    ms = Charts.last_ms_of(variant)
    cut = if ms > scale.ms, do: "; the first #{Words.time(scale.ms * 1000)} are drawn", else: ""
    "#{Words.time(ms * 1000)} in all#{cut}."
  end

  defp left_out(%{left_out: 0}), do: []

  defp left_out(%{left_out: count, picture: picture}) do
    [
      "#{Number.grouped(length(picture))} of #{Number.grouped(count + length(picture))} slices: of each few in a row the longest."
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
