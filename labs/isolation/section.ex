defmodule Tame.Isolation.Section do
  @moduledoc """
  What the isolation lab has to say in the report, from its result. Pure.

  Calls by size, crashes as time lines, memory over calls.
  """

  alias Tame.Isolation.{Charts, Format, Memory}
  alias Tame.{Number, Stats}
  alias Tame.Report.{Figure, IsolationCost, Section, Table, Words}

  @ways %{"isolated" => :isolated, "nif_dirty_cpu" => :dirty_nif, "port" => :port}

  # The warnings that concern one figure; the others are about the whole lab.
  @of_calls ~w(too_few_samples)
  @of_crashes ~w(other_error)
  @of_memory ~w(memory_grew)

  # More time lines say nothing new; the table has all.
  @drawn 6

  @doc "The section, from a result of the isolation lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    findings = findings(result)

    %Section{
      id: "isolation",
      name: "Isolation",
      title: "Isolation: a NIF library in an OS process of its own",
      findings: findings,
      conclusion: for(%{answer: answer} <- findings, do: answer) ++ memory_sentence(result.memory),
      warnings: Section.warnings(result, :but, @of_calls ++ @of_crashes ++ @of_memory),
      intro: intro(),
      facts: facts(result),
      words: Charts.words(),
      figures: [calls(result), crashes(result), memory(result)]
    }
  end

  defp findings(result) do
    rows =
      for row <- measured(result.calls), way = @ways[row.method] do
        {row.bytes, way, row.p50_us * 1000}
      end

    IsolationCost.findings(rows, Format.median(result.crashes.crashes, :answered_ms))
  end

  defp memory_sentence(%{rows: []}), do: []

  defp memory_sentence(%{rows: rows}) do
    last = List.last(rows)

    [
      [
        "After #{Number.grouped(last.calls)} calls a host holds ",
        {:strong, "#{Words.digits(last.host_bytes / 1_000_000)}\u00A0MB"},
        "; from the middle of them to the end " <>
          Words.list(
            for {who, bytes, _} <- Memory.grown(rows),
                do: "the #{who}'s memory #{change(bytes)}"
          ) <> "."
      ]
    ]
  end

  defp change(0), do: "stayed the same"
  defp change(bytes) when bytes > 0, do: "grew by #{Words.bytes(bytes)}"
  defp change(bytes), do: "shrank by #{Words.bytes(-bytes)}"

  defp intro do
    [
      "The same binary goes there and back by each way. The ways take turns, each round in another order, and every call " <>
        "is timed by itself. A dirty NIF passes a large binary on by reference, and an isolated one and a port copy it.",
      "A library with a fault in it is called in a VM of its own, where a second process calls the same library all the time. " <>
        "Crashes are more than a second apart: a host then starts again at once."
    ]
  end

  defp facts(result) do
    [
      {"calls of each way and size",
       "#{Number.grouped(result.iterations)} in #{result.rounds} rounds"},
      {"order of turns", "shuffled, seed #{result.seed}"},
      {"crashes", Integer.to_string(length(result.crashes.crashes))}
    ]
  end

  # ---- calls by size -----------------------------------------------------------------------------

  defp calls(result) do
    measured = measured(result.calls)

    %Figure{
      id: "calls",
      title: "What a call costs, by the size of its payload",
      caption: [
        "The line is p50, the dashed one p99. Each line of the grid is ten times the one before it."
        | not_measured(Enum.reject(result.calls, &(&1.status == "ok")))
      ],
      warnings: Section.warnings(result, :only, @of_calls),
      spec: if(measured != [], do: Charts.calls(measured)),
      table: %Table{
        title: "Calls by size, in µs",
        columns: [{"payload", :text} | for(title <- tl(Format.size_titles()), do: {title, :number})],
        rows: for(size <- Format.by_size(result.calls), do: Format.size_row(size))
      }
    }
  end

  defp not_measured([]), do: []

  defp not_measured(rows) do
    for row <- rows do
      "Not measured: #{row.method} with #{Words.bytes(row.bytes)}, #{row.status}: #{row.reason}."
    end
  end

  # ---- crashes -----------------------------------------------------------------------------------

  defp crashes(%{crashes: %{crashes: []} = failed}) do
    %Figure{
      id: "crashes",
      title: "A crash, and the calls around it",
      caption: ["No crash was measured: #{failed.reason}."]
    }
  end

  defp crashes(%{crashes: %{crashes: crashes}} = result) do
    drawn = Enum.take(crashes, @drawn)
    scale = Charts.scale(drawn)

    %Figure{
      id: "crashes",
      title: "A crash, and the calls around it",
      caption: [
        "Bars are the calls of another process that were answered in a millisecond; the lines are when the call that crashed " <>
          "raised its exception, and when the next call was answered. All pictures are on one scale. " <>
          crashes_sentence(crashes)
      ],
      warnings: Section.warnings(result, :only, @of_crashes),
      panels:
        for {crash, index} <- Enum.with_index(drawn, 1) do
          %{
            id: "#{index}",
            title: "Crash #{index}",
            note:
              "Raised after #{Words.time(crash.raised_ms * 1000)}, answered after #{Words.time(crash.answered_ms * 1000)}.",
            spec: Charts.crash(crash, scale)
          }
        end,
      table: %Table{
        title: "All crashes",
        columns: [
          {"crash", :text},
          {"ended by", :code}
          | for(title <- tl(Format.crash_titles()), do: {title, :number})
        ],
        rows:
          for {crash, index} <- Enum.with_index(crashes, 1) do
            ["#{index}" | Format.crash_row(crash)]
          end
      }
    }
  end

  defp crashes_sentence(crashes) do
    answered = Enum.map(crashes, & &1.answered_ms)

    "Of #{length(crashes)} crashes, the next answer came after #{Words.time(Stats.median(answered) * 1000)} in the middle, " <>
      "#{Words.time(Enum.max(answered) * 1000)} at most."
  end

  # ---- memory ------------------------------------------------------------------------------------

  defp memory(%{memory: %{rows: []} = failed}) do
    %Figure{
      id: "memory",
      title: "Memory over calls",
      caption: ["Memory was not measured: #{failed.reason}."]
    }
  end

  defp memory(%{memory: memory} = result) do
    %Figure{
      id: "memory",
      title: "Memory over calls",
      caption: [
        "Binaries of #{Words.list(Enum.map(memory.sizes, &Words.bytes/1))} by turns. Held is what the operating system counts as " <>
          "resident, in use what the VM itself counts, after a garbage collection of every process."
      ],
      warnings: Section.warnings(result, :only, @of_memory),
      spec: Charts.memory(memory.rows),
      table: %Table{
        title: "Memory over calls, in numbers",
        columns: for(title <- Format.memory_titles(), do: {title, :number}),
        rows: Enum.map(memory.rows, &Format.memory_row/1)
      }
    }
  end

  defp measured(rows), do: Enum.filter(rows, &(&1.status == "ok"))
end
