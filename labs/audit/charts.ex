defmodule Tame.Audit.Charts do
  @moduledoc """
  The audit's chart as a Vega-Lite spec, data inside.
  """

  alias Tame.Report.{Chart, Colours}

  # In this order no two neighbours look alike to a colour-blind reader.
  @colours ~w(blue vermillion green yellow violet sky plum grey)a

  # A logarithmic axis has no zero.
  @floor_us 1.0

  # The colour of the target with that index, from 0.
  defp colour(index), do: @colours |> Enum.at(rem(index, length(@colours))) |> Colours.hex()

  @doc "The longest slice of each target by input size, both on logarithmic axes, and the budgets as dashed lines."
  @spec slices([map()]) :: map()
  def slices(targets) do
    rows =
      for target <- targets, point <- target.points do
        %{
          target: name(target),
          bytes: point.bytes,
          us: max(point.longest_slice_us, @floor_us),
          kind: to_string(point.slice_kind),
          elapsed: point.elapsed_us
        }
      end

    budgets = targets |> Enum.map(&%{us: &1.budget_us, text: "budget"}) |> Enum.uniq()
    {low, high} = (Enum.map(rows, & &1.us) ++ Enum.map(budgets, & &1.us)) |> Enum.min_max()
    {first, last} = rows |> Enum.map(& &1.bytes) |> Enum.min_max()

    Chart.new("longest slice by input size, for each function", 320, %{
      layer: [
        %{
          data: %{values: rows},
          mark: %{type: "line", strokeWidth: 2, tooltip: nil},
          encoding: encoding([first, last], [low, high], targets)
        },
        # The pointer need not hit a dot: the nearest one tells.
        %{
          data: %{values: rows},
          params: [
            %{
              name: "near",
              select: %{type: "point", on: "pointerover", nearest: true, clear: "pointerout"}
            }
          ],
          mark: %{type: "circle", size: 50, opacity: 1},
          encoding:
            [first, last]
            |> encoding([low, high], targets)
            |> Map.put(:tooltip, [
              %{field: "target", title: "function"},
              %{field: "bytes", type: "quantitative", title: "bytes", format: ","},
              Chart.number("us", "longest slice, µs"),
              %{field: "kind", title: "on"},
              Chart.number("elapsed", "elapsed, µs")
            ])
        },
        %{
          data: %{values: budgets},
          mark: %{type: "rule", strokeDash: [6, 4], color: Colours.hex(:grey), tooltip: nil},
          encoding: %{y: %{field: "us", type: "quantitative"}}
        }
      ]
    })
  end

  defp encoding(sizes, [low, high], targets) do
    pairs = for {target, index} <- Enum.with_index(targets), do: {name(target), colour(index)}

    %{
      x: Chart.log_bytes(sizes, "input, bytes"),
      y: Chart.log_us([low / 1.5, high * 1.5], "longest slice, µs"),
      color: Chart.colours("target", pairs, %{columns: 1, labelLimit: 320})
    }
  end

  # Told apart where one function is called on two inputs.
  defp name(target), do: "#{target.target} #{target.about}"
end
