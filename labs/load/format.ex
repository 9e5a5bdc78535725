defmodule Tame.Load.Format do
  @moduledoc "A result of the load lab as text for a terminal and as JSON. All pure."

  alias Tame.{Duration, Number, Result, Stats, TextTable}
  alias Tame.Load.{Figures, Threads, Verdict}

  # A cell's figures, the one list of them: title, key, how it is written.
  @figures [
    {"hello p50", :hello_p50_us, :time},
    {"p99", :hello_p99_us, :time},
    {"spread %", :hello_p99_us, :spread},
    {"p99.9", :hello_p999_us, :time},
    {"max", :hello_max_us, :time},
    {"failed", :hello_failed, :count},
    {"refused ", :hello_refused, :count},
    {"jobs/s asked", :job_rate, :count},
    {"answered/s", :job_answered_per_s, :number},
    {"refused", :job_refused, :count},
    {"given up", :job_failed, :count},
    {"not sent", :job_planned, :unsent},
    {"job p50", :job_p50_us, :time},
    {"p99 ", :job_p99_us, :time},
    {"regular cores", :regular, :cores},
    {"dirty", :dirty, :cores},
    {"other", :other, :cores},
    {"client", :client_cores, :number},
    {"normal after", :recovered_ms, :recovered}
  ]

  # How many of them are about hello, and then about jobs; the others are about cores.
  @answers {7, 7}

  @blocks ~w(▁ ▂ ▃ ▄ ▅ ▆ ▇ █)

  # From 0.1 ms to 10 s: the drawing has a line for each power of ten.
  @least_us 100
  @powers 5

  @json_cell ~w(placement job_us job_rate status reason counts_agree? hello_planned hello_sent hello_answered hello_refused hello_failed
    hello_unanswered hello_p50_us hello_p99_us hello_p999_us hello_max_us job_planned job_sent job_answered job_refused job_failed job_unanswered
    job_answered_per_s job_p50_us job_p99_us job_p999_us job_max_us calm_p99_us recovered_ms client_late_p99_us client_cores
    server_us_per_request us_per_request cores spread intervals cpu utilisation)a
  @json_capacity ~w(server protocol status reason per_s sent answered failed us_per_request server_us_per_request client_cores spread)a
  @json_limit ~w(placement job_us status reason held_per_s held_p99_us steps overload)a

  @doc "The machine, the tables, a drawing of each cell, the warnings."
  @spec text(Tame.Load.result()) :: iodata()
  def text(result) do
    body = [
      how(result),
      capacity(result.capacity),
      cells(result),
      limits(result.limits, result.bound_us),
      for(sentence <- Verdict.claim(result), do: ["\n", sentence, "\n"])
    ]

    Result.text(result.system, body, result.warnings)
  end

  defp how(result) do
    [
      "Open loop: #{result.open_client}, each time from the planned start. It gets at most ",
      "#{Number.grouped(round(result.ceiling.answered_per_s))} answers/s here, from a server that answers at once, for ",
      "#{Number.short(result.ceiling.client_us_per_request)} µs of CPU each.\n",
      if(result.closed_client, do: ["Closed loop: ", result.closed_client, ".\n"], else: []),
      "Order of turns: seed #{result.seed}, #{result.rounds} #{if result.rounds == 1, do: "round", else: "rounds"}.\n"
    ]
  end

  # ---- capacity ----------------------------------------------------------------------------------

  @doc "Titles of `capacity_row/1`."
  @spec capacity_titles() :: [String.t()]
  def capacity_titles do
    ["server", "protocol", "requests/s", "spread %", "CPU µs each"] ++
      Enum.map(Threads.kinds(), &to_string/1) ++ ["client cores"]
  end

  @doc "A row of the closed loop as texts, nil where there is none."
  @spec capacity_row(map()) :: [nil | String.t()]
  def capacity_row(row) do
    [
      row.server,
      row.protocol,
      row.per_s && Number.grouped(round(row.per_s)),
      spread(row, :per_s),
      Number.short(row.server_us_per_request)
    ] ++
      for(kind <- Threads.kinds(), do: Number.short(row.us_per_request && row.us_per_request[kind])) ++
      [Number.short(row.client_cores)]
  end

  @doc "The closed loop as a table."
  @spec capacity([map()]) :: iodata()
  def capacity([]), do: []

  def capacity(rows) do
    [
      "\nhello as fast as it is answered (closed loop)\n",
      TextTable.format(capacity_titles(), Enum.map(rows, &dashes(capacity_row(&1)))),
      reasons(rows, &"#{&1.server} #{&1.protocol}")
    ]
  end

  # ---- cells -------------------------------------------------------------------------------------

  @doc "Titles of `figures/1`."
  @spec figure_titles() :: [String.t()]
  def figure_titles, do: for({title, _, _} <- @figures, do: String.trim(title))

  @doc "How many of the figures are about hello, and how many after them about jobs."
  @spec answers() :: {pos_integer(), pos_integer()}
  def answers, do: @answers

  @doc "The figures of a cell as texts, nil where there is none."
  @spec figures(map()) :: [nil | String.t()]
  def figures(cell), do: for({_, key, how} <- @figures, do: figure(cell, key, how))

  @doc "A cell in words."
  @spec name(map()) :: String.t()
  def name(%{job_us: 0} = cell), do: cell.placement
  def name(cell), do: "#{cell.placement}, #{Duration.text(cell.job_us)}"

  defp figure(%{hello_p50_us: nil}, key, how) when how != :count or key != :job_rate, do: nil
  defp figure(cell, key, :spread), do: spread(cell, key)
  defp figure(cell, key, :unsent), do: Integer.to_string(cell[key] - cell.job_sent)
  defp figure(%{cores: nil}, _key, :cores), do: nil
  defp figure(cell, key, :cores), do: Number.short(cell.cores[key])
  defp figure(%{recovered_ms: nil}, _key, :recovered), do: "not seen"
  defp figure(cell, key, :recovered), do: Duration.short(1000 * cell[key])
  defp figure(cell, key, :time), do: cell[key] && Duration.short(cell[key])
  defp figure(cell, key, :number), do: Number.short(cell[key])
  defp figure(cell, key, :count), do: cell[key] && to_string(cell[key])

  defp spread(row, key) do
    with %{} = spread <- row[:spread],
         percent when percent != nil <- Stats.spread_percent(spread[key], row[key]),
         [low, high] when low != high <- spread[key] do
      percent |> round() |> Integer.to_string()
    else
      _ -> nil
    end
  end

  defp cells(%{cells: []}), do: []

  defp cells(result) do
    for {us, cells} <- result.cells |> Enum.group_by(& &1.job_us) |> Enum.sort() do
      [
        "\n#{result.server} #{result.protocol}, #{jobs(us, result)}; hello #{result.hello_rate} times a second beside them (open loop)\n",
        TextTable.format(
          ["placement" | figure_titles()],
          for(cell <- cells, do: [cell.placement | dashes(figures(cell))])
        ),
        reasons(cells, &name/1),
        for(cell <- cells, cell.intervals != [], do: drawing(cell))
      ]
    end
  end

  defp jobs(0, _result), do: "requests without a job"

  defp jobs(us, result),
    do: "jobs of #{Duration.text(us)} at #{result.load_percent} % of what the cores can do"

  @doc "Lines of blocks on one axis of time: what was answered, how late, and which threads used the cores."
  @spec drawing(map()) :: iodata()
  def drawing(cell) do
    times = Enum.map(cell.intervals, & &1.since_ms)
    most = fn key -> cell.intervals |> Enum.map(& &1[key]) |> Enum.max() |> max(1) end

    lines = [
      {"hello/s, of #{round(most.(:hello_per_s))}",
       Enum.map(cell.intervals, &(&1.hello_per_s / most.(:hello_per_s)))},
      {"hello p99, 0.1 ms to 10 s", Enum.map(cell.intervals, &height(&1.hello_p99_us))},
      {"jobs/s, of #{round(most.(:jobs_per_s))}",
       Enum.map(cell.intervals, &(&1.jobs_per_s / most.(:jobs_per_s)))},
      {"utilisation, regular", utilisation(cell.utilisation, :normal, times)},
      {"utilisation, dirty CPU", utilisation(cell.utilisation, :dirty, times)},
      {"CPU of regular schedulers", shares(cell.cpu, :normal, times)},
      {"CPU of dirty schedulers", shares(cell.cpu, :dirty, times)},
      {"CPU of other threads", shares(cell.cpu, :other, times)}
    ]

    width = lines |> Enum.map(fn {title, _} -> String.length(title) end) |> Enum.max()

    [
      "\n#{name(cell)}: from #{hd(times)} ms on, #{Figures.interval_ms()} ms each, jobs from 0 on\n",
      for(
        {title, shares} <- lines,
        do: ["  ", String.pad_trailing(title, width + 2), blocks(shares), ?\n]
      )
    ]
  end

  @doc """
  Shares from 0 to 1 as blocks; a gap is a reading that came late, because a scheduler was held.

      iex> Tame.Load.Format.blocks([0, 0.01, 0.5, 1, nil, :gap])
      " ▁▄█ ·"
  """
  @spec blocks([nil | :gap | number()]) :: String.t()
  def blocks(shares), do: Enum.map_join(shares, &block/1)

  defp block(nil), do: " "
  defp block(:gap), do: "·"
  defp block(share) when share <= 0, do: " "
  defp block(share), do: Enum.at(@blocks, min(7, ceil(share * 8) - 1))

  @doc """
  A time as a height from 0 to 1: a fifth for each power of ten from 0.1 ms on.

      iex> Enum.map([nil, 100, 10_000, 10_000_000], &Tame.Load.Format.height/1)
      [nil, 0.01, 0.4, 1.0]
  """
  @spec height(nil | number()) :: nil | float()
  def height(nil), do: nil
  def height(us) when us <= @least_us, do: 0.01
  def height(us), do: min(1.0, Float.round(:math.log10(us / @least_us) / @powers, 3))

  # The mean of what was seen in each interval.
  defp shares(cpu, kind, times) do
    step = Figures.interval_ms()

    for from <- times do
      Stats.mean(for share <- cpu, share.at_ms > from, share.at_ms <= from + step, do: share[kind])
    end
  end

  # As the VM says it. One that was asked for and came late belongs to none of the intervals that it spans.
  defp utilisation(readings, kind, times) do
    step = Figures.interval_ms()

    for from <- times do
      within = Enum.filter(readings, &(&1.since_ms < from + step and &1.at_ms > from))
      if Enum.any?(within, & &1.late), do: :gap, else: Stats.mean(Enum.map(within, & &1[kind]))
    end
  end

  # ---- limits ------------------------------------------------------------------------------------

  @doc "Titles of `limit_row/1`."
  @spec limit_titles() :: [String.t()]
  def limit_titles do
    [
      "placement",
      "job",
      "held jobs/s",
      "hello p99",
      "at twice that: jobs/s",
      "hello p99 ",
      "refused",
      "given up",
      "normal after"
    ]
  end

  @doc "The limit of a placement as texts."
  @spec limit_row(map()) :: [nil | String.t()]
  def limit_row(%{overload: over} = row) do
    [
      row.placement,
      Duration.text(row.job_us),
      row.held_per_s && to_string(row.held_per_s),
      row.held_p99_us && Duration.short(row.held_p99_us),
      to_string(over.rate),
      over.hello_p99_us && Duration.short(over.hello_p99_us) <> Verdict.lost_text(over),
      to_string(over.refused),
      to_string(over.failed),
      if(over.recovered_ms, do: Duration.short(1000 * over.recovered_ms), else: "not seen")
    ]
  end

  defp limits([], _bound_us), do: []

  defp limits(rows, bound_us) do
    [
      "\nthe highest rate at which hello's p99 is at most #{Duration.text(bound_us)}, and twice that\n",
      TextTable.format(limit_titles(), Enum.map(rows, &dashes(limit_row(&1)))),
      reasons(rows, & &1.placement)
    ]
  end

  defp reasons(rows, name) do
    for %{status: status} = row when status != "ok" <- rows do
      # A row that died says so itself.
      if status == "died",
        do: "#{name.(row)}  #{row.reason}\n",
        else: "#{name.(row)}  #{status}: #{row.reason}\n"
    end
  end

  defp dashes(texts), do: Enum.map(texts, &(&1 || "-"))

  # ---- JSON --------------------------------------------------------------------------------------

  @doc "The result as JSON."
  @spec json(Tame.Load.result()) :: iodata()
  def json(result), do: Result.json(result, fields(result))

  @doc "What of a result JSON has beside what all tools have."
  @spec fields(Tame.Load.result()) :: keyword()
  def fields(result) do
    head =
      for key <-
            ~w(server protocol open_client closed_client cores load_percent hello_rate bound_us for_ms rounds seed ceiling)a,
          do: {key, result[key]}

    head ++
      [
        capacity: Enum.map(result.capacity, &taken(&1, @json_capacity)),
        cells: Enum.map(result.cells, &taken(&1, @json_cell)),
        limits: Enum.map(result.limits, &taken(&1, @json_limit)),
        sentences: Verdict.claim(result)
      ]
  end

  defp taken(row, keys), do: for(key <- keys, do: {key, Map.get(row, key)})
end
