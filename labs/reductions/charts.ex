defmodule Tame.Reductions.Charts do
  @moduledoc """
  The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws.

  Every variant given must have been measured. Slices are on a logarithmic axis, with lines at tame's
  default slice and at the budget, because they reach from a microsecond to seconds.
  """

  alias Tame.Report.{Chart, Colours, Words}

  @type variant :: map()
  @type spec :: map()

  # Blue and green for the two kinds of schedulers, vermillion for the harm.
  @kinds [
    {"normal", Colours.hex(:blue), "slices on a normal scheduler"},
    {"dirty", Colours.hex(:green), "slices on a dirty scheduler"},
    {"neighbour", Colours.hex(:vermillion), "how late the neighbour on the same scheduler woke"}
  ]

  # What tame.h takes by default, and what no slice may exceed.
  @slice_us :tame_job_rates.slice_us()
  @limits [
    %{limit_us: @slice_us, limit: "#{@slice_us} µs"},
    %{limit_us: 1000, limit: "1 ms"}
  ]

  # How much time pictures on one scale show, as a multiple of what half of the runs take.
  @most_medians 3

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
        x: time_scale(domain(rows)),
        color: colour(~w(normal dirty neighbour), rows)
      },
      layer: [
        Chart.limits(@limits, :x)
        | Chart.row_dots([
            %{field: "variant", title: "variant"},
            Chart.number("longest_slice_us", "longest slice, µs"),
            Chart.number("longest_dirty_slice_us", "longest dirty slice, µs"),
            Chart.number("neighbour_max_us", "neighbour at most, µs")
          ])
      ]
    })
  end

  @doc """
  For the first screen: how late the neighbour woke at most, beside each of `{variant, name}`.
  """
  @spec answer([{variant(), String.t()}]) :: spec()
  def answer(named) do
    rows =
      for {variant, name} <- named do
        us = drawn(variant.neighbour_max_us)

        %{
          placement: name,
          kind: "neighbour",
          us: us,
          text: Words.time(us),
          longest_slice_us: variant.longest_slice_us,
          elapsed_us: variant.elapsed_us
        }
      end

    Chart.answers("how late the neighbour woke, by placement", "placement", rows,
      colours: for({"neighbour" = name, colour, _} <- @kinds, do: {name, colour}),
      limits: [{1000, "1 ms budget"}],
      tooltip: [
        %{field: "placement", title: "placement"},
        Chart.number("us", "neighbour at most, µs"),
        Chart.number("longest_slice_us", "longest slice, µs"),
        Chart.number("elapsed_us", "the job took, µs")
      ]
    )
  end

  @doc """
  What the pictures of `slices/2` have in common: `:us`, the scale of the slices, and `:ms`, how much time is drawn. A run
  that takes far longer than most would leave the others too small to see, so it is cut off there.
  """
  @spec scale([variant()]) :: %{us: [number()], ms: number()}
  def scale(variants) do
    rows = Enum.flat_map(variants, &rows/1)
    ends = for variant <- variants, rows = rows(variant), rows != [], do: last_ms(rows)
    %{us: domain(rows), ms: min(Enum.max(ends), @most_medians * Tame.Stats.median(ends))}
  end

  @doc """
  The slices of one variant over time: each a line from its start to its end at the height of its length.
  """
  @spec slices(variant(), %{us: [number()], ms: number()}) :: spec()
  def slices(variant, scale) do
    Chart.new("slices of #{variant.id} over time", 150, %{
      data: %{values: Enum.filter(rows(variant), &(&1.start_ms <= scale.ms))},
      encoding: %{
        x: %{
          field: "start_ms",
          type: "quantitative",
          title: "ms",
          scale: %{domain: [0, scale.ms], nice: false},
          axis: %{tickCount: 5, labelFlush: true, grid: false}
        },
        y: time_scale(scale.us),
        color: %{colour(~w(normal dirty)) | legend: nil}
      },
      layer: [
        Chart.limits(for(limit <- @limits, do: %{limit | limit: ""}), :y),
        %{
          mark: %{type: "rule", strokeWidth: 3, opacity: 0.8, tooltip: nil, clip: true},
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

  @doc "How long the run of the picture took, in ms."
  @spec last_ms_of(variant()) :: number()
  def last_ms_of(variant), do: variant |> rows() |> last_ms()

  defp rows(variant), do: Enum.map(variant.picture, &slice_row(variant, &1))

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

  defp time_scale([low, high] = domain),
    do: %{Chart.log_us(domain, nil) | axis: Chart.time_axis(low, high)}

  defp last_ms(rows), do: rows |> Enum.map(& &1.end_ms) |> Enum.max()

  # The limits are always in the picture: how far away they are is what it shows.
  defp domain(rows) do
    {low, high} = rows |> Enum.map(& &1.us) |> Enum.min_max()
    [min(low, 50) / 1.5, max(high, 1500) * 1.5]
  end

  defp drawn(us), do: max(us / 1, @floor_us)

  defp colour(names, rows) do
    present = for name <- names, Enum.any?(rows, &(&1.kind == name)), do: name
    colour(present)
  end

  defp colour(names) do
    Chart.colours("kind", for({name, colour, _} <- @kinds, name in names, do: {name, colour}))
  end
end
