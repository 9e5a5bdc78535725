defmodule Tame.AuditFixture do
  @moduledoc "A made-up result of an audit: two libraries, one function that blocks, one that yields, one that crashed."

  alias Tame.Audit.{Advice, Growth, Library, Point, Verdict}

  @budget_us 1000

  def result do
    %{
      system: [tame: "0.1.0", command: "mix tame.audit"],
      libraries: [library("alpha", "/lib/alpha.so"), library("beta", "/lib/beta.so")],
      targets: [
        target("alpha:whole/1", &(&1 / 500)),
        target("alpha:cut/1", &min(&1 / 500, 120.0)),
        %{
          target("beta:bad/1", & &1)
          | points: [],
            growth: nil,
            verdicts: [{:crashes, 1024, "SIGSEGV"}]
        }
      ],
      notes: [],
      warnings: [],
      failures: []
    }
  end

  def library(name, path) do
    %Library{
      module: name,
      path: path,
      nif_version: "2.16",
      bound: {:ok, [{"a", 1}, {"b", 2}]},
      can: [
        yields: true,
        charges: false,
        resources: "with destructors",
        upgrade: true,
        min_erts: "erts-12.0"
      ],
      functions: [
        %{name: "a", arity: 1, kind: :normal},
        %{name: "b", arity: 2, kind: :dirty_cpu}
      ]
    }
  end

  def target(name, slice_us) do
    points =
      for n <- 5..12, bytes = Integer.pow(4, n) do
        %Point{
          bytes: bytes,
          elapsed_us: bytes / 500,
          longest_slice_us: slice_us.(bytes) * 1.0,
          slice_kind: :normal,
          longest_call_us: bytes / 500,
          charge_ratio: 0.9,
          neighbour_max_us: 200.0,
          call_neighbour_us: 150.0,
          loop_calls: 100,
          loop_slice_us: 900.0,
          loop_median_us: 800.0,
          loop_neighbour_us: 200.0
        }
      end

    verdicts = Verdict.judge(points, nil, @budget_us)

    %{
      target: name,
      about: "on binary",
      budget_us: @budget_us,
      points: points,
      growth: points |> Verdict.pairs() |> Growth.fit(),
      crosses_budget_at_bytes: Verdict.crosses(points, @budget_us),
      verdicts: verdicts,
      advice: Advice.sentences(name, points, verdicts, @budget_us),
      notes: []
    }
  end
end
