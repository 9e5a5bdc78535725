defmodule Tame.Audit.Format do
  @moduledoc """
  What an audit found as text for a terminal and as JSON. All pure.
  """

  alias Tame.Audit.{Diff, Library, Verdict}
  alias Tame.{Number, Result, TextTable, Warning}

  @kinds %{normal: "normal", dirty_cpu: "dirty CPU", dirty_io: "dirty I/O", unknown: "unknown"}

  @point_keys ~w(bytes elapsed_us longest_slice_us slice_kind other_slice_us charge_ratio neighbour_max_us dirty_wait_max_us)a

  @doc "How a kind of function is written."
  @spec kind_text(Library.kind()) :: String.t()
  def kind_text(kind), do: @kinds[kind]

  @doc "The libraries, then the functions that were called, then notes."
  @spec text(Tame.Audit.result()) :: iodata()
  def text(result) do
    [
      Enum.map(result.libraries, &[library(&1), ?\n]),
      called(result),
      Enum.map(result.notes, &[&1, ?\n]),
      summary(result.libraries),
      Warning.text(result.warnings)
    ]
  end

  @doc "The functions that were called."
  @spec called(Tame.Audit.result()) :: iodata()
  def called(result), do: Enum.map(result.targets, &[target(&1), ?\n])

  # ---- libraries ------------------------------------------------------------------------------------

  defp library(%Library{} = library) do
    [
      [library.module, "  ", library.path, ?\n],
      ["  ", library |> about() |> Enum.join(", ") |> wrap("  "), ?\n],
      for kind <- Library.kinds(), names = Library.of_kind(library, kind), names != [] do
        ["  ", @kinds[kind], " (#{length(names)}): ", names |> Enum.join(", ") |> wrap("    "), ?\n]
      end,
      bound(library)
    ]
  end

  defp about(%{nif_version: nil, functions: [%{kind: :unknown} | _]} = library) do
    if Library.built_in?(library),
      do: ["the kind of its functions is unknown: this emulator does not show its tables"],
      else: ["the kind of its functions cannot be seen from outside"]
  end

  defp about(%{nif_version: nil}), do: ["from its own table; what else it can do cannot be seen"]

  defp about(library) do
    erts = if min = library.can[:min_erts], do: ["#{min} or newer"], else: []

    can =
      case Library.can_texts(library) do
        [] -> ["neither yields nor charges"]
        texts -> texts
      end

    ["NIF #{library.nif_version}" | erts] ++ can
  end

  defp bound(%{bound: {:error, why}}), do: ["  the module: ", why, ?\n]

  defp bound(%{bound: {:ok, []}, functions: [_ | _]}) do
    "  the VM has bound none of them: the module loads its library later, or loads another one\n"
  end

  defp bound(library) do
    {table, vm} = Library.unmatched(library)

    [
      if(table != [], do: ["  in the library, not bound: ", Enum.join(table, ", "), ?\n], else: []),
      if(vm != [], do: ["  bound, not in the library: ", Enum.join(vm, ", "), ?\n], else: [])
    ]
  end

  defp summary([]), do: []

  defp summary(libraries) do
    counts =
      for kind <- Library.kinds(),
          count = libraries |> Enum.map(&length(Library.of_kind(&1, kind))) |> Enum.sum(),
          count > 0,
          do: "#{count} #{@kinds[kind]}"

    count = length(libraries)

    [
      "#{count} #{if count == 1, do: "library", else: "libraries"}; functions: ",
      Enum.join(counts, ", "),
      ?\n
    ]
  end

  # The longest line, in characters; later lines of a paragraph are indented further.
  @width 118

  defp wrap(text, indent) do
    text
    |> String.split(" ")
    |> Enum.reduce([""], fn
      word, [""] ->
        [word]

      word, [line | lines] when byte_size(line) + byte_size(word) < @width - 20 ->
        [line <> " " <> word | lines]

      word, lines ->
        [word | lines]
    end)
    |> Enum.reverse()
    |> Enum.join("\n" <> indent)
  end

  @doc "What changed since `old`, the libraries of a saved audit."
  @spec diff(Tame.Audit.result(), [map()]) :: iodata()
  def diff(result, old) do
    case Diff.lines(old, result.libraries) do
      [] -> "nothing changed since\n"
      lines -> ["changed since:\n" | Enum.map(lines, &["  ", &1, ?\n])]
    end
  end

  # ---- functions that were called -------------------------------------------------------------------

  defp target(target) do
    rows = Enum.map(target.points, &row/1)
    columns = ["bytes" | Enum.map(columns(), &elem(&1, 0))]

    [
      [target.target, "  ", target.about, ?\n],
      if(rows == [], do: [], else: TextTable.format(columns, rows)),
      fit(target),
      for(verdict <- target.verdicts, do: ["  ", verdict |> Verdict.text() |> wrap("    "), ?\n]),
      for(note <- target.notes, do: ["  ", note, ?\n]),
      ["  ", wrap(target.advice, "  "), ?\n]
    ]
  end

  @doc "Titles of a point's figures, and the figures as texts."
  @spec columns() :: [{String.t(), (map() -> String.t())}]
  def columns do
    [
      {"elapsed µs", &number(&1.elapsed_us)},
      {"longest slice µs", &number(&1.longest_slice_us)},
      {"longest NIF µs", &number(&1.longest_call_us)},
      {"on", &to_string(&1.slice_kind)},
      {"charged÷used", &ratio(&1.charge_ratio)},
      {"neighbour µs", &number(&1.call_neighbour_us)},
      {"loop slice µs", &number(&1.loop_slice_us)},
      {"loop neighbour µs", &number(&1.loop_neighbour_us)},
      {"dirty wait µs", &number(&1.dirty_wait_max_us)}
    ]
  end

  defp row(point), do: ["#{point.bytes}" | for({_, text} <- columns(), do: text.(point))]

  defp number(nil), do: "-"
  defp number(us), do: Number.short(us)

  defp ratio(nil), do: "-"
  defp ratio(ratio), do: :erlang.float_to_binary(ratio / 1, decimals: 2)

  defp fit(%{growth: nil}), do: []

  defp fit(%{growth: growth}) do
    "  the longest slice grows with bytes^#{ratio(growth.exponent)} (R² #{ratio(growth.fit)}, #{growth.points} sizes)\n"
  end

  # ---- JSON -----------------------------------------------------------------------------------------

  @doc "The result as JSON: `tool`, `format`, `system`, `libraries`, `targets`."
  @spec json(Tame.Audit.result()) :: iodata()
  def json(result) do
    result
    |> Map.merge(%{tool: "tame.audit", format: 1})
    |> Result.json(
      libraries: Enum.map(result.libraries, &library_json/1),
      targets: Enum.map(result.targets, &target_json/1)
    )
  end

  defp library_json(library) do
    [
      module: library.module,
      path: library.path,
      nif_version: library.nif_version,
      can: Map.new(library.can),
      functions: for(f <- library.functions, do: [name: f.name, arity: f.arity, kind: f.kind])
    ]
  end

  defp target_json(target) do
    [
      target: target.target,
      points:
        for(point <- target.points, do: for(key <- @point_keys, do: {key, Map.fetch!(point, key)})),
      growth_exponent: target.growth && target.growth.exponent,
      crosses_budget_at_bytes: target.crosses_budget_at_bytes,
      verdicts: Enum.map(target.verdicts, &Verdict.text/1),
      advice: target.advice,
      notes: target.notes
    ]
  end
end
