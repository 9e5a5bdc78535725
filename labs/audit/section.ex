defmodule Tame.Audit.Section do
  @moduledoc """
  What an audit has to say in the report. Pure.

  The functions that were called with their slices and verdicts, and every NIF that was found.
  """

  alias Tame.Audit.{Charts, Format, Library, Verdict}
  alias Tame.Report.{Figure, Section, Table}

  @doc "The section, from a result of `Tame.Audit.run/3`."
  @spec from_result(Tame.Audit.result()) :: Section.t()
  def from_result(result) do
    %Section{
      id: "audit",
      warnings: Enum.map(result.warnings, &Map.take(&1, [:id, :text])),
      title: "Audit: what any NIF can do, and whether it blocks",
      intro: [
        "Read from each library's own table and imports, in a process that was thrown away; and functions called in a VM of " <>
          "their own on inputs of growing size, in a fresh process each time, watched from outside by trace."
        | words(result.targets)
      ],
      facts: [
        {"libraries", "#{length(result.libraries)}"},
        {"functions",
         result.libraries |> Enum.map(&length(&1.functions)) |> Enum.sum() |> Integer.to_string()},
        {"called", "#{length(result.targets)}"}
      ],
      figures: slices(result.targets) ++ [libraries(result.libraries)]
    }
  end

  defp words(targets) do
    for target <- targets do
      verdicts = Enum.map_join(target.verdicts, "; ", &Verdict.text/1)
      "#{target.target} #{target.about}: #{verdicts}. #{target.advice}"
    end
  end

  defp slices([]), do: []

  defp slices(targets) do
    measured = Enum.filter(targets, &(&1.points != []))

    [
      %Figure{
        id: "slices",
        title: "How the longest slice grows with the input",
        caption: [
          "A slice is time on a scheduler's thread without a break. The dashed line is the budget: a function whose line " <>
            "crosses it blocks from that size on, one whose line stays flat below it yields. Both axes are logarithmic."
        ],
        spec: if(measured != [], do: Charts.slices(measured)),
        table: %Table{
          title: "Every size that was tried",
          columns: [{"function", :code}, {"bytes", :number} | Enum.map(Format.columns(), &column/1)],
          rows: Enum.flat_map(targets, &rows/1)
        }
      }
    ]
  end

  defp column({"on", _}), do: {"on", :kind}
  defp column({title, _}), do: {title, :number}

  defp rows(%{points: []} = target),
    do: [[target.target, {:note, Enum.map_join(target.verdicts, "; ", &Verdict.text/1)}]]

  defp rows(target) do
    for point <- target.points do
      [target.target, "#{point.bytes}" | for({_, text} <- Format.columns(), do: dash(text.(point)))]
    end
  end

  defp dash("-"), do: nil
  defp dash(text), do: text

  defp libraries(libraries) do
    %Figure{
      id: "nifs",
      title: "Every NIF that was found",
      caption: [
        "How it is declared: one that is declared normal and can yield may move to a dirty scheduler by itself."
      ],
      table: %Table{
        title: "NIFs by library",
        columns: [
          {"module", :code},
          {"function", :code},
          {"declared", :kind},
          {"its library can", :text}
        ],
        filter: "declared",
        rows:
          for library <- libraries, function <- library.functions do
            [
              library.module,
              "#{function.name}/#{function.arity}",
              Format.kind_text(function.kind),
              library |> Library.can_texts() |> Enum.join(", ")
            ]
          end
      }
    }
  end
end
