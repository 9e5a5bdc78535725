defmodule Tame.Contention.Format do
  @moduledoc """
  A contention result as text for a terminal and as JSON. All pure.
  """

  alias Tame.{Duration, Number, Result, Stats, TextTable}
  alias Tame.Contention.{Advice, Verdict}

  # A cell's figures, the one list of them: title, key, and how it is written. The tables of the terminal and of the report
  # have all of them, JSON has all but those that follow.
  @figures [
    {"neighbour p50 ms", :neighbour_p50_us, :ms},
    {"p99 ms", :neighbour_p99_us, :ms},
    {"max ms", :neighbour_max_us, :ms},
    {"spread %", :neighbour_max_us, :spread},
    {"fifths %", :neighbour_max_us, :within},
    {"missed s", :missed_seconds, :count},
    {"dirty CPU p99 ms", :dirty_cpu_wait_p99_us, :ms},
    {"dirty CPU max ms", :dirty_cpu_wait_max_us, :ms},
    {"dirty I/O max ms", :dirty_io_wait_max_us, :ms},
    {"gc max ms", :gc_wait_max_us, :ms},
    {"longest slice µs", :longest_slice_us, :number},
    {"p99.9 µs", :p999_slice_us, :number},
    {"charged÷used", :charge_ratio, :ratio},
    {"normal %", :normal_utilisation, :percent},
    {"dirty CPU %", :dirty_cpu_utilisation, :percent},
    {"other threads %", :other_cpu, :percent},
    {"wall ms", :wall_ms, :number},
    {"ideal ms", :ideal_ms, :number},
    {"jobs done", :finished, :count},
    {"long_schedule", :long_schedule_events, :count},
    {"memory MB", :memory_mb, :number}
  ]

  # Of rounds, and within one.
  @spreads ~w(spread within)a

  @not_json ~w(p999_slice_us finished memory_mb)a

  @json_figures for({_, key, kind} <- @figures, kind not in @spreads, do: key) -- @not_json
  @json_keys ~w(placement duration_us multiplier jobs status)a ++
               @json_figures ++ [:samples, :cpu, :held]

  @ansi %{green: :green, yellow: :yellow, red: :red, none: :normal}

  @doc "The machine block, the tables, every cell's figures, the observers' cost, the advice, the warnings."
  @spec text(Tame.Contention.result(), boolean()) :: iodata()
  def text(result, colours? \\ false) do
    body = [
      tables(result, colours?),
      legend(),
      ?\n,
      cells(result),
      unmeasured(result),
      rounds(result),
      observers(result),
      advice(result)
    ]

    Result.text(result.system, body, result.warnings)
  end

  @doc "The result as JSON: `tool`, `format`, `system`, `cells`. A cell that did not end well says why, as `reason`."
  @spec json(Tame.Contention.result()) :: iodata()
  def json(result) do
    cells =
      for cell <- result.cells do
        reason = if cell.reason, do: [reason: cell.reason], else: []
        spreads = for key <- @spreads, do: {key, spreads(cell[key] || %{})}
        for(key <- @json_keys, do: {key, cell[key]}) ++ spreads ++ reason
      end

    Result.json(result, rounds: result.rounds, seed: result.seed, cells: cells)
  end

  defp spreads(spreads) do
    for {key, [low, high]} <- spreads, key in @json_figures, into: %{}, do: {key, [low, high]}
  end

  @doc "The shape of a cell's figures in a saved report."
  @spec shape() :: Tame.Report.Shape.t()
  def shape do
    figures =
      for {_, key, kind} <- @figures,
          kind not in @spreads,
          into: %{},
          do: {key, {:maybe, shape(kind)}}

    spreads = {:maybe, {:each, {:maybe, {:row, [:number, :number]}}}}
    Map.merge(figures, %{spread: spreads, within: spreads})
  end

  defp shape(:count), do: :count
  defp shape(:ratio), do: :number
  defp shape(_kind), do: :amount

  @doc "Titles of a cell's figures."
  @spec figure_titles() :: [String.t()]
  def figure_titles, do: for({title, _, _} <- @figures, do: title)

  @doc "A cell's figures as texts, in the order of `figure_titles/0`."
  @spec figures(map()) :: [String.t() | nil]
  def figures(cell) do
    for {_, key, kind} <- @figures do
      case kind do
        :spread -> spread(cell.spread[key], cell[key])
        :within -> cell.within[key] |> Stats.spread_percent(cell[key]) |> Number.short()
        _ -> figure(cell[key], kind)
      end
    end
  end

  @doc "The cells of one duration by placement: `{duration_us, multipliers, [{placement, [cell | nil]}]}`."
  @spec grid([map()]) :: [{pos_integer(), [pos_integer()], [{String.t(), [map() | nil]}]}]
  def grid(cells) do
    placements = cells |> Enum.map(& &1.placement) |> Enum.uniq()

    for duration_us <- cells |> Enum.map(& &1.duration_us) |> Enum.uniq() do
      here = Enum.filter(cells, &(&1.duration_us == duration_us))
      multipliers = here |> Enum.map(& &1.multiplier) |> Enum.uniq() |> Enum.sort()

      rows =
        for placement <- placements do
          {placement,
           for m <- multipliers do
             Enum.find(here, &(&1.placement == placement and &1.multiplier == m))
           end}
        end

      {duration_us, multipliers, rows}
    end
  end

  # Of one round there is none.
  defp spread([value, value], _median), do: nil
  defp spread(spread, median), do: spread |> Stats.spread_percent(median) |> Number.short()

  defp figure(nil, _kind), do: nil
  defp figure(us, :ms), do: Number.short(us / 1000)
  defp figure(value, :number), do: Number.short(value)
  defp figure(value, :count), do: Integer.to_string(value)
  defp figure(value, :percent), do: Integer.to_string(round(100 * value))
  defp figure(value, :ratio), do: :erlang.float_to_binary(value / 1, decimals: 2)

  # ---- the talk's tables -------------------------------------------------------------------------

  defp tables(result, colours?) do
    for {duration_us, multipliers, rows} <- grid(result.cells) do
      columns = ["jobs of #{Duration.text(duration_us)}" | Enum.map(multipliers, &"#{&1}×")]
      texts = for {placement, cells} <- rows, do: [placement | Enum.map(cells, &text_of/1)]
      levels = for {_, cells} <- rows, do: Enum.map(cells, &level_of/1)
      [table(columns, texts, levels, colours?), ?\n]
    end
  end

  defp text_of(nil), do: "-"
  defp text_of(cell), do: Verdict.cell_text(cell)

  defp level_of(nil), do: :none

  defp level_of(cell), do: Verdict.worse_level(cell)

  # Widths are those of the plain texts, so colours are put in after.
  defp table(columns, rows, levels, colours?) do
    widths =
      [columns | rows]
      |> Enum.zip_with(fn texts -> texts |> Enum.map(&String.length/1) |> Enum.max() end)

    lines = [{columns, nil} | Enum.zip(rows, levels)]
    for {texts, levels} <- lines, do: [line(texts, widths, levels, colours?), ?\n]
  end

  defp line([name | texts], [width | widths], levels, colours?) do
    levels = levels || Enum.map(texts, fn _ -> :none end)

    cells =
      [texts, widths, levels]
      |> Enum.zip_with(fn [text, width, level] ->
        ["  ", coloured(text, level, colours?), String.duplicate(" ", width - String.length(text))]
      end)

    [String.pad_trailing(name, width), cells] |> IO.iodata_to_binary() |> String.trim_trailing()
  end

  defp coloured(text, level, true) when level != :none do
    [apply(IO.ANSI, @ansi[level], []), text, IO.ANSI.reset()]
  end

  defp coloured(text, _level, _colours?), do: text

  defp legend do
    signs =
      for {level, sign, meaning} <- Verdict.meanings() do
        sign = if sign == "", do: "no sign", else: sign
        "  #{sign} (#{level}): #{meaning}\n"
      end

    [
      "A cell is the longest time for which a normal process got no CPU, and behind \"dirty\" that for which a trivial dirty\n" <>
        "CPU NIF waited, where it is longer than 100 ms. … : stopped at the cell's limit.\n",
      signs
    ]
  end

  # ---- figures -----------------------------------------------------------------------------------

  defp cells(result) do
    rows =
      for cell <- result.cells, cell.neighbour_max_us do
        [name(cell) | Enum.map(figures(cell), &(&1 || "-"))]
      end

    if rows == [], do: [], else: TextTable.format(["cell" | figure_titles()], rows)
  end

  defp unmeasured(result) do
    failed =
      for %{status: "failed"} = cell <- result.cells, do: "#{name(cell)}  failed: #{cell.reason}\n"

    refused =
      for %{refused: count} = cell when is_integer(count) and count > 0 <- result.cells do
        "#{name(cell)}  #{count} jobs were refused as {tame, busy}: the pool's queue was full\n"
      end

    failed ++ refused
  end

  defp rounds(%{rounds: 1, seed: seed}) do
    [
      "\nEach cell was measured once, in an order drawn from seed #{seed}: how much a figure varies from one run to the next is not\n" <>
        "known (--rounds 3).\n",
      fifths()
    ]
  end

  defp rounds(%{rounds: rounds, seed: seed}) do
    [
      "\nMedians of #{rounds} rounds, in an order drawn from seed #{seed}; spread: from the least to the greatest of the longest\n" <>
        "delays, as a share of their median.\n",
      fifths()
    ]
  end

  defp fifths do
    "Fifths: a flood's time in five parts; from the least to the greatest of their longest delays, as a share of the longest. It says\n" <>
      "how even the delays were within one run: at 0 each part had as long a one as the others, at 100 nobody was late in one.\n"
  end

  @doc "A cell in words."
  @spec name(map()) :: String.t()
  def name(cell),
    do: "#{cell.placement} #{Duration.text(cell.duration_us)} #{cell.multiplier}×"

  defp observers(%{empty: %{neighbour_max_us: nil}}), do: []

  defp observers(%{empty: empty}) do
    "\nWithout a flood: neighbours woke #{Number.short(empty.neighbour_p99_us / 1000)} ms late (p99), " <>
      "#{Number.short(empty.neighbour_max_us / 1000)} ms at most; the dirty CPU NIF waited " <>
      "#{Number.short((empty.dirty_cpu_wait_max_us || 0) / 1000)} ms at most. The observers kept " <>
      "#{Number.short(100 * empty.busy_cores)} % of one core busy; the collection of 50 MB, once in each cell, takes " <>
      "#{Number.short((empty.gc_own_us || 0) / 1000)} ms by itself.\n"
  end

  defp advice(result) do
    case Advice.sentences(result) do
      [] -> []
      sentences -> [?\n | Enum.map(sentences, &[&1, ?\n])]
    end
  end
end
