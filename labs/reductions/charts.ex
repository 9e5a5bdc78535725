defmodule Tame.Reductions.Charts do
  @moduledoc """
  The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws.

  Every variant given must have been measured. Slices are on a logarithmic axis, with lines at tame's
  default slice and at the budget, because they reach from a microsecond to seconds.
  """

  alias Tame.Report.{Chart, Colours}

  @type variant :: map()
  @type spec :: map()

  # Blue and green for the two kinds of schedulers, vermillion for the harm.
  @kinds [
    {"normal", Colours.hex(:blue), "slices on a normal scheduler"},
    {"dirty", Colours.hex(:green), "slices on a dirty scheduler"},
    {"neighbour", Colours.hex(:vermillion), "how late the neighbour on the same scheduler woke"}
  ]

  @grey Colours.hex(:grey)

  # What tame.h takes by default, and what no slice may exceed.
  @slice_us :tame_job_rates.slice_us()
  @limits [
    %{limit_us: @slice_us, limit: "#{@slice_us} µs"},
    %{limit_us: 1000, limit: "1 ms budget"}
  ]

  # A logarithmic axis has no zero, so a reading of zero is drawn here.
  @floor_us 0.1

  @doc "Every kind of mark with its colour and what it means."
  @spec kinds() :: [Tame.Report.Section.word()]
  def kinds, do: for({name, colour, meaning} <- @kinds, do: {colour, name, meaning})

  @doc """
  One row a variant: a dot at its longest slice on a normal scheduler, one at its longest on a dirty
  one where there is one, and one at the latest wake-up of the neighbour.
  """
  @spec harm([variant()]) :: spec()
  def harm(variants) do
    rows = Enum.flat_map(variants, &harm_rows/1)

    description = "longest slice and latest wake-up of the neighbour, by variant"

    Chart.rows(description, "variant", variants, %{
      data: %{values: rows},
      encoding: %{
        x: Chart.log_us(domain(rows), "µs"),
        color: colour(~w(normal dirty neighbour), rows)
      },
      layer: [
        Chart.row_bands(%{
          tooltip: [
            %{field: "variant", title: "variant"},
            Chart.number("longest_slice_us", "longest slice, µs"),
            Chart.number("longest_dirty_slice_us", "longest dirty slice, µs"),
            Chart.number("neighbour_max_us", "neighbour at most, µs")
          ]
        }),
        limit_rules(:x),
        %{mark: %{type: "circle", size: 110, opacity: 1, tooltip: nil}}
      ]
    })
  end

  @doc """
  The slices of one variant over time: each a line from its start to its end at the height of its length.
  """
  @spec slices(variant()) :: spec()
  def slices(variant) do
    rows = Enum.map(variant.picture, &slice_row(variant, &1))

    Chart.new("slices of #{variant.id} over time", 180, %{
      data: %{values: rows},
      encoding: %{
        x: %{
          field: "start_ms",
          type: "quantitative",
          title: "time since the start, ms",
          scale: %{domain: [0, last_ms(rows)], nice: false}
        },
        y: Chart.log_us(domain(rows), "slice, µs"),
        color: colour(~w(normal dirty), rows)
      },
      layer: [
        limit_rules(:y),
        %{
          mark: %{type: "rule", strokeWidth: 3, opacity: 0.8, tooltip: nil},
          encoding: %{x2: %{field: "end_ms"}}
        },
        %{mark: %{type: "circle", size: 16, opacity: 0.8, tooltip: nil}},
        Chart.nearest([
          %{field: "variant", title: "variant"},
          %{field: "kind", title: "scheduler"},
          Chart.number("start_ms", "start, ms"),
          Chart.number("us", "slice, µs")
        ])
      ]
    })
  end

  defp harm_rows(variant) do
    all =
      Map.take(variant, [:longest_slice_us, :longest_dirty_slice_us, :neighbour_max_us])
      |> Map.put(:variant, variant.id)

    for {kind, us} <- [
          {"normal", variant.longest_slice_us},
          {"dirty", if(variant.dirty_slices > 0, do: variant.longest_dirty_slice_us)},
          {"neighbour", variant.neighbour_max_us}
        ],
        us != nil do
      Map.merge(all, %{kind: kind, us: drawn(us)})
    end
  end

  defp slice_row(variant, slice) do
    %{
      variant: variant.id,
      kind: slice.kind,
      start_ms: Float.round(slice.start_us / 1000, 4),
      end_ms: Float.round((slice.start_us + slice.us) / 1000, 4),
      us: drawn(slice.us)
    }
  end

  defp last_ms(rows), do: rows |> Enum.map(& &1.end_ms) |> Enum.max()

  # The limits are always in the picture: how far away they are is what it shows.
  defp domain(rows) do
    {low, high} = rows |> Enum.map(& &1.us) |> Enum.min_max()
    [min(low, 50) / 1.5, max(high, 1500) * 1.5]
  end

  defp drawn(us), do: max(us / 1, @floor_us)

  # Lines across the chart, each with its name at its end.
  defp limit_rules(axis) do
    position = %{field: "limit_us", type: "quantitative"}

    {rule, text, text_mark} =
      case axis do
        :x ->
          {%{x: position, y: %{value: 0}, y2: %{value: "height"}}, %{x: position, y: %{value: 0}},
           %{align: "left", dx: 4, baseline: "bottom", dy: -2}}

        :y ->
          {%{y: position, x: %{value: 0}, x2: %{value: "width"}},
           %{y: position, x: %{value: "width"}},
           %{align: "right", dx: -2, baseline: "bottom", dy: -2}}
      end

    %{
      data: %{values: @limits},
      encoding: %{color: %{value: @grey}},
      layer: [
        %{
          mark: %{type: "rule", strokeDash: [4, 4], color: @grey, tooltip: nil},
          encoding: rule
        },
        %{
          mark: Map.merge(%{type: "text", fontSize: 11, color: @grey, tooltip: nil}, text_mark),
          encoding: Map.put(text, :text, %{field: "limit", type: "nominal"})
        }
      ]
    }
  end

  defp colour(names, rows) do
    present = for name <- names, Enum.any?(rows, &(&1.kind == name)), do: name
    kinds = for {name, colour, _} <- @kinds, name in present, do: {name, colour}
    Chart.colours("kind", kinds)
  end
end
