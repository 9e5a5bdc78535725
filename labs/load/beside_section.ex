defmodule Tame.Load.BesideSection do
  @moduledoc "What a server in a NIF costs beside cowboy, in the report, from its result. Pure."

  alias Tame.Load.{Beside, Charts, Format}
  alias Tame.Report.{Figure, Section, Table, Words}

  @protocols %{"h1" => "HTTP/1.1", "h2" => "HTTP/2"}

  @doc "The section, from a result of `Tame.Load.Beside`."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    measured = Enum.filter(result.rows, &(&1.us_per_request != nil))

    %Section{
      id: "http",
      name: "HTTP",
      title: "HTTP in a NIF, beside cowboy",
      conclusion: conclusion(Beside.ratios(measured)),
      warnings: Section.warnings(result, :but, []),
      intro: [
        "libraries/http is a server whose protocol is native (hyper, on threads of its own) and whose handlers are Erlang. Requests come " <>
          "to Erlang in batches, and answers go back with one wake-up for many.",
        "Servers that do the same work are divided by each other: one process for all requests on both sides (cowboy's stream handler), or a " <>
          "process for each (its plain handler). Not alike: cowboy has a router in its plain handler, and makes a map of a request's headers, " <>
          "where tame_http makes a list. The static route is answered without Erlang, so it has no counterpart."
      ],
      facts: [
        {"client",
         "#{result.client}, 100 connections, on HTTP/2 with 10 streams each, on the same cores"},
        {"each server", "#{result.for_s} s after a second of warming up, #{rounds(result.rounds)}"},
        {"order of turns", "shuffled, seed #{result.seed}"}
      ],
      words: Charts.threads(),
      figures: [figure(result.rows, measured)]
    }
  end

  defp rounds(1), do: "in one round"
  defp rounds(count), do: "the median of #{count} rounds"

  defp conclusion([]), do: []

  defp conclusion(ratios) do
    for {cowboy, other} <- Beside.pairs(),
        of = Enum.filter(ratios, &(&1.cowboy == cowboy)),
        of != [] do
      ["A request costs #{cowboy} ", {:strong, times(of)}, " as much CPU as #{other}."]
    end
  end

  defp times(ratios) do
    Words.list(for r <- ratios, do: "#{Words.times(r.ratio)} (#{@protocols[r.protocol]})")
  end

  defp figure(rows, measured) do
    %Figure{
      id: "http-cost",
      title: "CPU of a request for hello",
      caption:
        [
          "As many requests as the server answers, in a closed loop. Compare the CPU of a request; requests a second depend on the " <>
            "client too, which runs on the same cores."
        ] ++
          for(
            %{status: "failed"} = row <- rows,
            do: "Not measured: #{Charts.name(row)}, #{row.reason}."
          ),
      spec: if(measured != [], do: Charts.capacity(measured)),
      table: %Table{
        title: "CPU of a request, in µs",
        columns: [
          {"server", :code},
          {"protocol", :text} | for(t <- Enum.drop(Format.capacity_titles(), 2), do: {t, :number})
        ],
        rows: Enum.map(rows, &Format.capacity_row/1)
      }
    }
  end
end
