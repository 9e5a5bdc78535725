defmodule Tame.Latency.Format do
  @moduledoc """
  A latency result as text for a terminal, as JSON and as HdrHistogram's text. All pure.
  """

  alias Tame.{Number, Result, Stats, TextTable}

  # The 2017 post's four types of interoperation, each by the method that stands for it.
  @types [
    {"Node", "network", "c_node"},
    {"Port", "process", "port"},
    {"Port driver", "shared", "driver_call"},
    {"NIF", "shared", "nif_normal"}
  ]

  @columns ["method", "isolation", "data type", "context switch", "p50", "spread %"] ++
             ~w(p90 p99 p99.9 max mean ×nif_normal GCs)

  @doc "The machine block, the table of methods fastest first, the order-of-magnitude table, the warnings."
  @spec text(Tame.Latency.result()) :: iodata()
  def text(result) do
    body = [
      "Latency in µs of #{result.iterations} echoes of a term of #{result.payload_bytes} bytes, " <>
        "in #{result.rounds} rounds, seed #{result.seed}, fastest first\n\n",
      methods(result),
      unmeasured(result),
      orders(result)
    ]

    Result.text(result.system, body, result.warnings)
  end

  @doc "The result as JSON: `tool`, `format`, `system`, `payload_bytes`, `iterations`, `methods`, and what belongs to them."
  @spec json(Tame.Latency.result()) :: iodata()
  def json(result) do
    methods =
      for row <- result.methods do
        for(
          key <- [
            :id,
            :status,
            :reason,
            :isolation,
            :data_type,
            :context_switch,
            :count,
            :p50_us,
            :p90_us,
            :p99_us,
            :p999_us,
            :max_us,
            :mean_us,
            :gc_runs,
            :out_of_range
          ],
          do: {key, Map.fetch!(row, key)}
        ) ++ [p50_spread_us: row.p50_spread_us]
      end

    Result.json(result,
      payload_bytes: result.payload_bytes,
      iterations: result.iterations,
      rounds: result.rounds,
      seed: result.seed,
      methods: methods
    )
  end

  @doc "`{id, text}` of each measured method: its percentile distribution in HdrHistogram's classic form, in µs."
  @spec hgrm(Tame.Latency.result()) :: [{String.t(), iodata()}]
  def hgrm(result) do
    for %{status: "ok"} = row <- result.methods do
      {row.id, :tame_histogram.hgrm(row.histogram, 5)}
    end
  end

  defp methods(result) do
    measured = measured(result)
    base = Enum.find(measured, &(&1.id == "nif_normal"))

    rows =
      for row <- Enum.sort_by(measured, & &1.p50_us) do
        times = [row.p90_us, row.p99_us, row.p999_us, row.max_us, row.mean_us]
        spread = Stats.spread_percent(row.p50_spread_us, row.p50_us)

        [row.id, isolation(row), row.data_type, row.context_switch] ++
          [Number.short(row.p50_us), Number.short(spread) || "-"] ++
          Enum.map(times, &Number.short/1) ++
          [times_base(row, base), Integer.to_string(row.gc_runs)]
      end

    TextTable.format(@columns, rows)
  end

  defp isolation(%{isolation: "none"}), do: "–"
  defp isolation(%{isolation: isolation}), do: isolation

  defp times_base(_row, nil), do: "-"
  defp times_base(row, base), do: Number.short(row.p50_us / base.p50_us)

  defp unmeasured(result) do
    for %{status: status} = row when status != "ok" <- result.methods do
      "#{row.id}  #{status}: #{row.reason}\n"
    end
  end

  # How many powers of ten lie between the types is what one remembers of such a table.
  defp orders(result) do
    measured = Map.new(measured(result), &{&1.id, &1})

    case measured do
      %{"nif_normal" => base} ->
        rows =
          for {type, isolation, id} <- @types, row = measured[id] do
            ratio = row.p50_us / base.p50_us

            [
              type,
              isolation,
              id,
              Number.short(row.p50_us),
              Number.short(ratio),
              "10^#{round(:math.log10(ratio))}"
            ]
          end

        columns = ["type", "isolation", "measured by", "p50 µs", "×NIF", "order"]
        ["\n", TextTable.format(columns, rows)]

      _ ->
        []
    end
  end

  defp measured(result), do: Enum.filter(result.methods, &(&1.status == "ok"))
end
