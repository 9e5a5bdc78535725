defmodule Tame.Report.Lanes do
  @moduledoc """
  A chart of what happened at the same time: lanes above each other on one axis of time. A bar in a lane reaches from one
  moment to another, and as high as its share says.
  """

  alias Tame.Report.{Chart, Colours}

  @typedoc "From the top; with the colour of its bars."
  @type lane :: {name :: String.t(), colour :: String.t()}

  @typedoc "A share is from 0 to 1; the text is what the pointer shows."
  @type bar :: %{
          lane: String.t(),
          from_ms: number(),
          to_ms: number(),
          share: number(),
          text: String.t()
        }

  @lane_px 30

  # Between two lanes, as a share of a lane's height.
  @gap 0.25

  @doc """
  The chart. Options: `:span`, the time that is drawn, `[from_ms, to_ms]`; `:title` of that axis; `:marks`, moments that get
  a dashed line (default: none).
  """
  @spec chart(String.t(), [lane()], [bar()], keyword()) :: map()
  def chart(description, lanes, bars, opts) do
    opts = Keyword.validate!(opts, [:span, :title, marks: []])
    bases = bases(lanes)
    height = map_size(bases) * (1 + @gap) - @gap

    x = %{
      type: "quantitative",
      title: opts[:title],
      axis: %{tickCount: 6, labelOverlap: true, grid: false},
      scale: %{domain: opts[:span], nice: false}
    }

    Chart.new(description, @lane_px * length(lanes), %{
      data: %{values: for(bar <- bars, drawn?(bar, opts[:span]), do: row(bar, bases))},
      encoding: %{
        y: %{
          type: "quantitative",
          title: nil,
          scale: %{domain: [0, height], nice: false},
          axis: axis(bases)
        },
        color: %{Chart.colours("lane", lanes) | legend: nil}
      },
      layer: [
        %{
          mark: %{type: "rect", clip: true},
          encoding: %{
            x: Map.put(x, :field, "from_ms"),
            x2: %{field: "to_ms"},
            y: %{field: "low"},
            y2: %{field: "high"},
            tooltip: [
              %{field: "lane", title: "who"},
              %{field: "text", title: "what"},
              %{field: "from_ms", type: "quantitative", title: "from, ms", format: ",.1f"},
              %{field: "to_ms", type: "quantitative", title: "to, ms", format: ",.1f"}
            ]
          }
        },
        %{
          data: %{values: for({_, base} <- bases, do: %{base: base})},
          mark: %{type: "rule", color: Colours.hex(:grey), opacity: 0.5, tooltip: nil},
          encoding: %{
            y: %{field: "base"},
            x: %{value: 0},
            x2: %{value: "width"},
            color: %{value: Colours.hex(:grey)}
          }
        },
        %{
          data: %{values: for(at <- opts[:marks], do: %{at: at})},
          mark: %{type: "rule", strokeDash: [4, 4], tooltip: nil},
          encoding: %{
            x: Map.put(x, :field, "at"),
            y: %{value: 0},
            y2: %{value: "height"},
            color: %{value: Colours.hex(:grey)}
          }
        }
      ]
    })
  end

  # Where each lane begins, counted from below.
  defp bases(lanes) do
    for {{name, _}, index} <- lanes |> Enum.reverse() |> Enum.with_index(), into: %{} do
      {name, index * (1 + @gap)}
    end
  end

  # The names of the lanes, each at its middle.
  defp axis(bases) do
    labels = for {name, base} <- Enum.sort_by(bases, &elem(&1, 1)), do: {name, base + 0.5}

    %{
      values: Enum.map(labels, &elem(&1, 1)),
      grid: false,
      ticks: false,
      domain: false,
      labelExpr:
        Enum.map_join(labels, " : ", fn {name, at} -> "datum.value == #{at} ? '#{name}'" end) <>
          " : ''"
    }
  end

  defp drawn?(bar, [from, to]), do: bar.share > 0 and bar.to_ms > from and bar.from_ms < to

  defp row(bar, bases) do
    base = bases[bar.lane]

    %{
      lane: bar.lane,
      text: bar.text,
      from_ms: round_ms(bar.from_ms),
      to_ms: round_ms(bar.to_ms),
      low: base,
      high: Float.round(base + min(bar.share, 1) / 1, 3)
    }
  end

  # Fewer digits make a smaller page.
  defp round_ms(ms), do: Float.round(ms / 1, 2)
end
