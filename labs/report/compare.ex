defmodule Tame.Report.Compare do
  @moduledoc """
  Two reports side by side: what differs between the machines, and each lab's figures with their ratios. Pure.

  A figure counts as changed where it, or what it was, is 1.25 times the other or more; how much two runs differ by themselves each
  lab says of its own.
  """

  alias Tame.Report.{Chart, Colours, Figure, Saved, Section, Table, Words}
  alias Tame.{Number, SystemInfo}

  @changed 1.25

  # A chart holds the figures that changed most.
  @most 12

  @worse Colours.hex(:vermillion)
  @better Colours.hex(:green)
  @alike Colours.hex(:grey)

  @type row :: %{
          lab: String.t(),
          row: String.t(),
          metric: String.t(),
          old: number(),
          new: number(),
          ratio: float()
        }

  @doc "The section that compares a report with an older one, by the labs that both have. `labs` are modules."
  @spec section(Saved.t(), Saved.t(), [module()]) :: Section.t()
  def section(new, old, labs) do
    both =
      for lab <- labs, is_map_key(new.labs, lab.name()), is_map_key(old.labs, lab.name()), do: lab

    rows = Enum.flat_map(both, &rows(&1, new, old))

    %Section{
      id: "compare",
      name: "Compared",
      title: "Compared with the run of #{date(old)}",
      conclusion: conclusion(rows),
      words: [
        {@worse, "slower", "#{@changed} times what it was, or more"},
        {@better, "faster", "it was #{@changed} times as much, or more"},
        {@alike, "alike", "in between"}
      ],
      figures: [machine(new, old) | Enum.flat_map(both, &figure(&1, rows))]
    }
  end

  @doc "The figures that both have, with their ratio: above 1 the newer is slower."
  @spec rows(module(), Saved.t(), Saved.t()) :: [row()]
  def rows(lab, new, old) do
    name = lab.name()

    before =
      for {row, metric, us} <- lab.figures(old.labs[name]), into: %{}, do: {{row, metric}, us}

    # A clock may have read nothing.
    for {row, metric, us} <- lab.figures(new.labs[name]),
        was = before[{row, metric}],
        was > 0 and us > 0 do
      %{lab: name, row: row, metric: metric, old: was, new: us, ratio: us / was}
    end
  end

  defp conclusion([]), do: ["The two runs have no figure in common."]

  defp conclusion(rows) do
    slower = Enum.count(rows, &(verdict(&1) == :slower))
    faster = Enum.count(rows, &(verdict(&1) == :faster))

    [
      [
        "Of #{length(rows)} figures ",
        {:strong, "#{slower} are slower"},
        ", and ",
        {:strong, "#{faster} are faster"},
        ", #{@changed} times or more. In the median a figure is #{Words.times(Tame.Stats.median(Enum.map(rows, & &1.ratio)))} what it was."
      ]
    ]
  end

  defp verdict(%{ratio: ratio}) when ratio >= @changed, do: :slower
  defp verdict(%{ratio: ratio}) when ratio <= 1 / @changed, do: :faster
  defp verdict(_row), do: :alike

  defp colour(row), do: %{slower: @worse, faster: @better, alike: @alike}[verdict(row)]

  # ---- machine --------------------------------------------------------------------------------------

  defp machine(new, old) do
    [was, now] = for saved <- [old, new], do: SystemInfo.lines(saved.system)
    labels = Enum.uniq(for {label, _} <- now ++ was, do: label)

    differences =
      for label <- labels, then = text(was, label), here = text(now, label), then != here do
        [label, then, here]
      end

    %Figure{
      id: "machine",
      title: "What was different",
      caption:
        if(differences == [],
          do: ["Nothing that the two runs wrote down of their machines."],
          else: []
        ),
      table:
        if differences != [] do
          %Table{
            title: "What was different",
            open: true,
            columns: [{"", :text}, {date(old), :text}, {date(new), :text}],
            rows: differences
          }
        end
    }
  end

  defp text(lines, label) do
    case List.keyfind(lines, label, 0) do
      {_, text} -> text
      nil -> "not said"
    end
  end

  defp date(%{at: at}), do: at |> String.slice(0, 16) |> String.replace("T", " ")

  # ---- figures --------------------------------------------------------------------------------------

  defp figure(lab, rows) do
    name = lab.name()

    case Enum.filter(rows, &(&1.lab == name)) do
      [] ->
        []

      own ->
        changed =
          own
          |> Enum.reject(&(verdict(&1) == :alike))
          |> Enum.sort_by(&(-abs(:math.log(&1.ratio))))
          |> Enum.take(@most)

        [
          %Figure{
            id: name,
            title: "#{String.capitalize(name)}, then and now",
            caption: [caption(changed, own)],
            spec: if(changed != [], do: chart(changed)),
            table: %Table{
              title: "All figures of both runs, in µs",
              columns: [
                {"of", :code},
                {"figure", :kind},
                {"then", :number},
                {"now", :number},
                {"now ÷ then", :number}
              ],
              rows: Enum.map(own, &cells/1)
            }
          }
        ]
    end
  end

  defp caption([], own), do: "None of #{length(own)} figures changed by #{@changed} times."

  defp caption(changed, own) do
    "The figures that changed most, #{length(changed)} of #{length(own)}, as multiples of what they were: to the right of " <>
      "the line the newer run is slower."
  end

  defp cells(row) do
    ratio = :erlang.float_to_binary(row.ratio, decimals: 2)
    [row.row, row.metric, Number.short(row.old), Number.short(row.new), {:dot, colour(row), ratio}]
  end

  defp chart(rows) do
    far = rows |> Enum.map(&max(&1.ratio, 1 / &1.ratio)) |> Enum.max() |> max(2)

    values =
      for row <- rows do
        %{
          figure: "#{row.row} #{row.metric}",
          ratio: Float.round(row.ratio, 3),
          verdict: Atom.to_string(verdict(row)),
          old: row.old,
          new: row.new
        }
      end

    Chart.rows("figures of this run as multiples of those of another", "figure", values, %{
      data: %{values: values},
      encoding: %{
        x: %{
          field: "ratio",
          type: "quantitative",
          title: "now ÷ then",
          scale: %{type: "log", domain: [0.8 / far, 1.25 * far], nice: false},
          axis: %{format: "~r", grid: true, tickCount: 6, labelOverlap: true}
        },
        color: %{
          Chart.colours("verdict", [{"slower", @worse}, {"faster", @better}, {"alike", @alike}])
          | legend: nil
        }
      },
      layer: [
        %{
          data: %{values: [%{at: 1}]},
          mark: %{type: "rule", color: @alike, tooltip: nil},
          encoding: %{
            x: %{field: "at", type: "quantitative"},
            y: %{value: 0},
            y2: %{value: "height"},
            color: %{value: @alike}
          }
        }
        | Chart.row_dots([
            %{field: "figure", title: "figure"},
            Chart.number("old", "then, µs"),
            Chart.number("new", "now, µs"),
            Chart.number("ratio", "now ÷ then")
          ])
      ]
    })
    |> put_in([:encoding, :y, :axis, :labelLimit], 260)
  end
end
