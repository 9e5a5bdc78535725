defmodule Tame.Audit.Section do
  @moduledoc """
  What an audit has to say in the report. Pure.

  The functions that were called with their slices and verdicts, and every NIF that was found, by library.
  """

  alias Tame.Audit.{Charts, Format, Library}
  alias Tame.Number
  alias Tame.Report.{Figure, Section, Table}

  @doc "The section, from what `Tame.Audit.Report.to_save/1` made of a result."
  @spec from_result(map()) :: Section.t()
  def from_result(%{libraries: libraries, targets: targets} = result) do
    functions = libraries |> Enum.map(&length(&1.functions)) |> Enum.sum()

    %Section{
      id: "audit",
      name: "Audit",
      title: "Audit: what any NIF can do, and whether it blocks",
      conclusion: [found(libraries, functions) | called(targets)],
      warnings: Section.warnings(result, :but, []),
      intro: [
        "Read from each library's own table and imports, in a process that was thrown away; and functions called in a VM of " <>
          "their own on inputs of growing size, in a fresh process each time, watched from outside by trace."
      ],
      facts: [
        {"libraries", "#{length(libraries)}"},
        {"functions", Number.grouped(functions)},
        {"called", "#{length(targets)}"}
      ],
      figures: slices(targets) ++ verdicts(targets) ++ [libraries(libraries)]
    }
  end

  # What cannot yield and is declared normal is where a long call would block.
  defp found([], _functions), do: "No NIF library was found."

  defp found(libraries, functions) do
    whole =
      for %{can: can, nif_version: version} = library <- libraries,
          version != nil,
          "yields" not in can do
        Enum.count(library.functions, &(kind(&1) == "normal"))
      end

    [
      "#{Number.grouped(functions)} NIFs were found in #{length(libraries)} libraries. ",
      {:strong, Number.grouped(Enum.sum(whole))},
      " of them are declared normal in a library that cannot yield: what such a function does on its scheduler, it does in one go."
    ]
  end

  defp called([]), do: []

  defp called(targets) do
    good = Enum.count(targets, &match?(["well-behaved" <> _ | _], &1.verdicts))
    ["Well-behaved: #{good} of #{length(targets)} functions that were called."]
  end

  defp verdicts([]), do: []

  defp verdicts(targets) do
    [
      %Figure{
        id: "verdicts",
        title: "What the called functions came to",
        table: %Table{
          title: "What the called functions came to",
          open: true,
          columns: [{"function", :code}, {"verdict", :text}, {"advice", :text}],
          rows:
            for target <- targets do
              ["#{target.target} #{target.about}", Enum.join(target.verdicts, "; "), target.advice]
            end
        }
      }
    ]
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
    do: [[target.target, {:note, Enum.join(target.verdicts, "; ")}]]

  defp rows(target) do
    for point <- target.points do
      [target.target, "#{point.bytes}" | for({_, text} <- Format.columns(), do: dash(text.(point)))]
    end
  end

  defp dash("-"), do: nil
  defp dash(text), do: text

  # ---- every NIF that was found ---------------------------------------------------------------------

  defp libraries(libraries) do
    %Figure{
      id: "nifs",
      title: "Every NIF that was found",
      caption: [
        "By library, with what it can do, and how each function is declared: one that is declared normal and can yield may " <>
          "move to a dirty scheduler by itself."
      ],
      table: %Table{
        title: "NIFs by library",
        columns: [{"declared", :kind}, {"number", :number}, {"functions", :names}],
        filter: "declared",
        rows: Enum.flat_map(libraries, &library/1)
      }
    }
  end

  defp library(%{functions: functions} = library) do
    by_kind = Enum.group_by(functions, &kind/1, &"#{&1.name}/#{&1.arity}")

    rows =
      for kind <- Library.kinds(), names = by_kind["#{kind}"] do
        [Format.kind_text(kind), "#{length(names)}", Enum.join(names, ", ")]
      end

    [{:group, library.module, about(library)} | rows]
  end

  defp kind(%{kind: kind}), do: to_string(kind)

  defp about(library) do
    version = if library.nif_version, do: ["NIF #{library.nif_version}"], else: []
    Enum.join(version ++ library.can ++ [library.path], ", ")
  end
end
