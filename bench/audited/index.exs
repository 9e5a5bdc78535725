defmodule Audited.Index do
  # The index as rows, and the rows as Markdown and as a page in the report's style.

  alias Tame.Audit.{Format, Library, Verdict}
  alias Tame.{Duration, Number}
  alias Tame.Report.{Section, Table}

  @columns [
    {"function", :code},
    {"declared", :kind},
    {"input", :code},
    {"longest slice, µs", :number},
    {"at bytes", :number},
    {"tried to bytes", :number},
    {"over 1 ms from bytes", :number},
    {"charged÷used", :number},
    {"leaks, bytes a call", :number},
    {"verdict", :kind},
    {"package", :kind},
    {"note", :text}
  ]

  @doc "A row of a function that was called; `why` of one that was not."
  def row(function, kinds, package, target) do
    worst = Enum.max_by(target.points, & &1.longest_slice_us, fn -> nil end)
    last = List.last(target.points)
    leak = for {:leaks, bytes, "bytes", _, _} <- target.verdicts, do: bytes

    %{
      function: function,
      declared: Enum.map_join(kinds, ", ", &Format.kind_text/1),
      input: String.replace_prefix(target.about, "on ", ""),
      slice_us: worst && worst.longest_slice_us,
      at: worst && worst.bytes,
      tried: last && last.bytes,
      from: target.crosses_budget_at_bytes,
      charged: last && last.charge_ratio,
      leaks: List.first(leak),
      verdicts: Enum.map(target.verdicts, &Verdict.name/1),
      note: Enum.join(told(target.verdicts) ++ refusal(target.notes), "; "),
      package: package,
      why: nil
    }
  end

  def not_called(function, kinds, package, why) do
    %{
      function: function,
      declared: Enum.map_join(kinds, ", ", &Format.kind_text/1),
      package: package,
      why: why
    }
  end

  # What the figures do not show.
  defp told(verdicts) do
    for verdict <- verdicts,
        Verdict.name(verdict) in [:inconclusive, :not_measured, :hangs, :crashes],
        do: Verdict.text(verdict)
  end

  defp refusal(notes), do: Enum.filter(notes, &(&1 =~ ~r/^answers /))

  @doc "Those that were called, what blocks from the smallest size on first; then the others by name."
  def sort(rows) do
    {called, not_called} = Enum.split_with(rows, &(&1.why == nil))

    {Enum.sort_by(called, &{&1.from || :none, -(&1.slice_us || 0), &1.function}),
     Enum.sort_by(not_called, & &1.function)}
  end

  # ---- Markdown -------------------------------------------------------------------------------------

  @doc "The part of docs/audited.md that the command writes."
  def markdown(rows, libraries, unread, about) do
    {called, not_called} = sort(rows)

    [
      about,
      "\n\n### Functions, what blocks from the smallest size on first\n\n",
      line(Enum.map(@columns, &elem(&1, 0))),
      line(Enum.map(@columns, fn _ -> "---" end)),
      Enum.map(called, &(&1 |> cells() |> code() |> line())),
      "\n### Functions that were not called, and why\n\n",
      line(["function", "declared", "why", "package"]),
      line(List.duplicate("---", 4)),
      for(row <- not_called, do: line(["`#{row.function}`", row.declared, row.why, row.package])),
      "\n### Libraries\n\n",
      line(["library", "package", "declared", "can"]),
      line(List.duplicate("---", 4)),
      for(
        {library, package} <- libraries,
        do: line(["`#{library.module}`" | library(library, package)])
      ),
      "\n### Libraries that could not be read, and why\n\n",
      for({package, why} <- unread, do: "- #{package}: #{why}\n")
    ]
  end

  defp code([function, kind, input | rest]), do: ["`#{function}`", kind, "`#{input}`" | rest]

  defp line(cells),
    do: ["| ", cells |> Enum.map(&(&1 || "–")) |> Enum.map_join(" | ", &bar/1), " |\n"]

  defp bar(text), do: String.replace(text, "|", "\\|")

  defp library(library, package) do
    kinds =
      for kind <- Library.kinds(),
          names = Library.of_kind(library, kind),
          names != [],
          do: "#{length(names)} #{Format.kind_text(kind)}"

    can =
      case Library.can_texts(library) do
        [] -> "neither yields nor charges"
        texts -> Enum.join(texts, ", ")
      end

    [package, Enum.join(kinds, ", "), can]
  end

  defp cells(row) do
    [
      row.function,
      row.declared,
      row.input,
      Number.short(row.slice_us),
      row.at && "#{row.at}",
      row.tried && "#{row.tried}",
      row.from && "#{row.from}",
      row.charged && :erlang.float_to_binary(row.charged / 1, decimals: 2),
      row.leaks && "#{round(row.leaks)}",
      row.verdicts |> Enum.uniq() |> Enum.map_join(", ", &String.replace("#{&1}", "_", "-")),
      row.package,
      row.note
    ]
  end

  # ---- the page -------------------------------------------------------------------------------------

  @doc "The same as a section of a report's page, its tables to be sorted and filtered."
  def section(rows, libraries, unread, about) do
    {called, not_called} = sort(rows)

    %Section{
      id: "audited",
      title: "Every NIF library of a Debian release",
      intro: [about],
      facts: [
        {"libraries", "#{length(libraries)}"},
        {"functions called", "#{length(called)}"},
        {"not called", "#{length(not_called)}"},
        {"block or hold a dirty thread", "#{Enum.count(called, &(&1.from != nil))}"},
        {"leak", "#{Enum.count(called, &(&1.leaks != nil))}"}
      ],
      tables: [
        %Table{
          title: "Functions, what blocks from the smallest size on first",
          columns: @columns,
          filter: "verdict",
          rows: Enum.map(called, &cells/1)
        },
        %Table{
          title: "Functions that were not called, and why",
          columns: [{"function", :code}, {"declared", :kind}, {"why", :text}, {"package", :kind}],
          filter: "package",
          rows: for(row <- not_called, do: [row.function, row.declared, row.why, row.package])
        },
        %Table{
          title: "Libraries",
          columns: [{"library", :code}, {"package", :kind}, {"declared", :text}, {"can", :text}],
          filter: "package",
          rows:
            for({library, package} <- libraries, do: [library.module | library(library, package)])
        },
        %Table{
          title: "Libraries that could not be read, and why",
          columns: [{"package", :kind}, {"why", :text}],
          rows: Enum.map(unread, &Tuple.to_list/1)
        }
      ]
    }
  end

  @doc "A time for the about line."
  def took(us), do: Duration.measured(us)
end
