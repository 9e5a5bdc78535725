defmodule Tame.Audit.Conform.Format do
  @moduledoc "What was compared, as text for a terminal and as JSON. Pure."

  alias Tame.Audit.Conform.Reason
  alias Tame.{Result, TextTable}

  @columns [
    {"calls", :calls},
    {"answered", :values},
    {"equal", :equal},
    {"contained", :contained},
    {"varies", :varies},
    {"not seen", :unseen},
    {"differs", :differs}
  ]

  @scenarios %{
    "callers" => "16 callers",
    "owners" => "owners that die",
    "host_killed" => "host killed"
  }

  @doc "The columns of a function's row, by name."
  def columns, do: @columns

  @doc "A scenario's name, for people."
  def scenario_text(name), do: @scenarios[name]

  @doc "One library."
  @spec library(map(), [{String.t(), atom()}]) :: iodata()
  def library(library, accepted \\ []) do
    rows =
      for row <- library.functions ++ [sum(library)],
          do: [row.function | Enum.map(@columns, fn {_, key} -> "#{row[key]}" end)]

    [
      [library.module, "  ", library.path, ?\n],
      indent(TextTable.format(["function" | Enum.map(@columns, &elem(&1, 0))], rows)),
      never_answered(library.functions),
      Enum.map(library.differences, &difference(&1, accepted)),
      for(row <- library.scenarios, do: scenario(row)),
      Enum.map(library.notes, &["  note: ", &1, ?\n])
    ]
  end

  # Equal errors show that the arguments were read, and little else. What varies is an answer as a rule.
  defp never_answered(functions) do
    case Enum.count(functions, &(&1.values == 0 and &1.varies == 0)) do
      0 ->
        []

      n ->
        "  #{n} of #{length(functions)} functions returned nothing but errors: --inputs has them called with what they take\n"
    end
  end

  @doc "All functions of a library together."
  @spec sum(map()) :: map()
  def sum(library) do
    for {_, key} <- @columns, into: %{function: "all"} do
      {key, library.functions |> Enum.map(& &1[key]) |> Enum.sum()}
    end
  end

  defp difference(found, accepted) do
    word = if {found.function, found.kind} in accepted, do: "accepted", else: "differs"

    [
      [
        "  ",
        word,
        ": ",
        found.function,
        ", ",
        Atom.to_string(found.kind),
        ", ",
        times(found.times),
        ?\n
      ],
      ["    ", found.input, ?\n],
      ["    in the VM: ", found.in_vm, ?\n],
      ["    isolated:  ", found.isolated, ?\n],
      ["    ", Reason.sentence(found), ?\n]
    ]
  end

  defp times(1), do: "once"
  defp times(n), do: "#{n} times"

  defp scenario(row) do
    ["  ", @scenarios[row.scenario], ": ", status(row.status), ", ", row.what, ?\n]
  end

  @doc "A scenario's outcome, for people."
  def status(:ok), do: "holds"
  def status(:differs), do: "differs"
  def status(:not_run), do: "not run"

  defp indent(text) do
    for line <- text |> IO.iodata_to_binary() |> String.split("\n", trim: true),
        do: ["  ", line, ?\n]
  end

  @doc "The line below all libraries."
  @spec summary(map()) :: iodata()
  def summary(result) do
    all = Enum.map(result.libraries, &sum/1)
    total = fn key -> all |> Enum.map(& &1[key]) |> Enum.sum() end
    count = length(result.libraries)
    libraries = if count == 1, do: "1 library", else: "#{count} libraries"

    "#{libraries}, #{total.(:calls)} calls: #{total.(:equal)} equal, #{total.(:contained)} crashes contained, " <>
      "#{total.(:varies)} vary in the VM itself, #{total.(:differs)} differ; --seed #{result.seed}\n"
  end

  @doc "As JSON; docs/schema/tame.conform.json has the keys."
  @spec json(map()) :: iodata()
  def json(result) do
    Result.json(%{tool: "tame.conform", format: 1, system: result.system},
      seed: result.seed,
      libraries: Enum.map(result.libraries, &library_json/1),
      failures: result.failures
    )
  end

  defp library_json(library) do
    %{
      module: library.module,
      path: library.path,
      took_ms: library.took_ms,
      functions:
        for row <- library.functions do
          for {_, key} <- @columns, into: %{function: row.function}, do: {json_key(key), row[key]}
        end,
      differences:
        for(found <- library.differences, do: Map.put(found, :reason, Reason.sentence(found))),
      scenarios: library.scenarios,
      notes: library.notes
    }
  end

  defp json_key(:values), do: :answered
  defp json_key(:unseen), do: :not_seen
  defp json_key(key), do: key
end
