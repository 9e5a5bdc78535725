defmodule Tame.Digest.Charts do
  @moduledoc "The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws."

  alias Tame.Number
  alias Tame.Report.{Chart, Colours}

  @type spec :: map()

  @ways [
    {"crypto", Colours.hex(:grey),
     "crypto:hash(sha3_256, _), which is OpenSSL, on a normal scheduler in pieces"},
    {"tame_sha3", Colours.hex(:blue), "tame_sha3:hash(sha3_256, _), one stream"},
    {"hash_many", Colours.hex(:green), "tame_sha3:hash_many/2, eight messages abreast"},
    {"kt128", Colours.hex(:amber), "KangarooTwelve, RFC 9861: one input, many leaves"}
  ]

  @delays [
    {"p50", Colours.hex(:pale_blue)},
    {"p99", Colours.hex(:blue)},
    {"longest", Colours.hex(:vermillion)}
  ]

  # A logarithmic axis has no zero.
  @floor_us 0.001

  @doc "Every colour with what it means."
  @spec words() :: [Tame.Report.Section.word()]
  def words, do: for({way, colour, meaning} <- @ways, do: {colour, way, meaning})

  @doc "A line for each way: the time of a call by the size of its input."
  @spec calls([map()]) :: spec()
  def calls(rows) do
    values =
      for row <- rows do
        us = max(row.us, @floor_us)
        %{way: row.way, bytes: row.bytes, us: us, mb: row.bytes / us}
      end

    {low, high} = values |> Enum.map(& &1.us) |> Enum.min_max()
    {first, last} = values |> Enum.map(& &1.bytes) |> Enum.min_max()
    y = Chart.log_us([low / 1.5, high * 1.5], "one call")

    Chart.new("the time of one call by the size of its input", 320, %{
      data: %{values: values},
      encoding: %{
        x: Chart.log_bytes([first, last], "input"),
        y: %{y | axis: Chart.time_axis(low, high)},
        color: colours(rows)
      },
      layer: [
        %{mark: %{type: "line", strokeWidth: 2}},
        %{mark: %{type: "circle", size: 40, opacity: 1}},
        Chart.nearest([
          %{field: "way", title: "by"},
          %{field: "bytes", type: "quantitative", title: "bytes", format: ","},
          Chart.number("us", "time, µs"),
          Chart.number("mb", "MB/s")
        ])
      ]
    })
  end

  @doc "A row for each way under load: how late its neighbour woke."
  @spec load([map()]) :: spec()
  def load(rows) do
    values =
      for row <- rows,
          {delay, us} <- [{"p50", row.p50_us}, {"p99", row.p99_us}, {"longest", row.max_us}] do
        %{way: label(row), delay: delay, us: max(us, @floor_us), mb: row.mb_per_s}
      end

    {low, high} = values |> Enum.map(& &1.us) |> Enum.min_max()
    x = Chart.log_us([low / 1.6, high * 1.6], "how late the neighbour woke")

    tooltip = [
      %{field: "way", title: "hashed by"},
      %{field: "delay", title: "delay"},
      Chart.number("us", "µs"),
      Chart.number("mb", "MB/s")
    ]

    Chart.rows("how late a neighbour woke, by who hashed", "way", Enum.map(rows, &label/1), %{
      data: %{values: values},
      encoding: %{
        x: %{x | axis: Chart.time_axis(low, high)},
        color: Chart.colours("delay", @delays)
      },
      layer: Chart.row_dots(tooltip)
    })
  end

  # The speed beside the delay: neither says enough alone.
  defp label(%{way: "nobody"}), do: "nobody"
  defp label(row), do: "#{row.way}, #{Number.grouped(round(row.mb_per_s))} MB/s"

  defp colours(rows) do
    measured = MapSet.new(rows, & &1.way)
    Chart.colours("way", for({way, colour, _} <- @ways, way in measured, do: {way, colour}))
  end
end
