defmodule Tame.LoadFixture do
  @moduledoc """
  A result of the load lab as the lab returns it: placements that keep hello alive, one that kills it, a server that died, one
  that was not measured, two servers in a closed loop, two limits. The figures are made up from typical runs.
  """

  alias Tame.Load.Figures

  # Placement, then hello's p99 in ms, jobs answered and refused.
  @placements [
    {"inline", 3700.0, 600, 0},
    {"yielding", 9.2, 480, 0},
    {"dirty_cpu", 210.0, 640, 0},
    {"pool", 2.1, 500, 400}
  ]

  @doc "The result."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.load",
      format: 1,
      system: [tame: "0.1.0", command: "mix tame.load --quick", otp: "25", peer_flags: "none"],
      warnings: [%{id: :client_late, text: "The client was late."}],
      command: "mix tame.load --quick",
      server: "cowboy",
      protocol: "h2",
      open_client: "tame_load",
      closed_client: "h2load nghttp2/1.52.0",
      cores: 2,
      load_percent: 200,
      hello_rate: 500,
      bound_us: 10_000,
      for_ms: 2500,
      rounds: 1,
      seed: 7,
      ceiling: %{answered_per_s: 61_000.0, client_us_per_request: 6.1},
      capacity: [
        capacity("cowboy", %{regular: 20.0, dirty: 0.0, poll: 0.4, aux: 0.1, other: 0.1}),
        capacity("cowboy_stream", nil)
      ],
      cells:
        [cell({"nothing", 0.9, 5000, 0}, 0)] ++
          Enum.map(@placements, &cell(&1, 10_000)) ++
          [
            Map.merge(cell({"thread", nil, 3, 0}, 10_000), %{
              status: "died",
              reason: "died after 3.1 s, signal 11"
            }),
            Map.merge(Figures.none(), %{
              placement: "auto",
              job_us: 10_000,
              job_rate: 400,
              status: "failed",
              reason: "the peer node does not start",
              spread: %{}
            })
          ],
      limits: [limit("inline", nil), limit("pool", 200)]
    }
  end

  @doc "A cell of a placement: hello's p99 in ms, jobs answered and refused."
  @spec cell({String.t(), nil | float(), non_neg_integer(), non_neg_integer()}, non_neg_integer()) ::
          map()
  def cell({placement, p99_ms, answered, refused}, job_us) do
    us = fn factor -> if p99_ms, do: 1000 * p99_ms * factor end

    Map.merge(Figures.none(), %{
      placement: placement,
      job_us: job_us,
      job_rate: 400,
      status: "ok",
      reason: nil,
      hello_planned: 2250,
      hello_sent: 2250,
      hello_answered: 2250,
      hello_p50_us: us.(0.2),
      hello_p99_us: us.(1),
      hello_p999_us: us.(1.1),
      hello_max_us: us.(1.2),
      job_planned: 1000,
      job_sent: min(1000, answered + refused),
      job_answered: answered,
      job_refused: refused,
      job_answered_per_s: answered / 2.5,
      job_p50_us: 1.2e6,
      job_p99_us: 3.1e6,
      recovered_ms: if(p99_ms && p99_ms < 1000, do: 0.0),
      client_late_p99_us: 80.0,
      client_cores: 0.06,
      cores: %{regular: 1.9, dirty: 0.0, poll: 0.01, aux: 0.0, other: 0.02},
      server_us_per_request: 500.0,
      us_per_request: %{regular: 490.0, dirty: 0.0, poll: 5.0, aux: 0.0, other: 5.0},
      spread: if(p99_ms, do: %{hello_p99_us: [us.(0.9), us.(1.1)]}, else: %{}),
      utilisation: [
        %{since_ms: -500.0, at_ms: 0.0, normal: 0.5, dirty: 0.0, queued: 0, late: false},
        %{since_ms: 0.0, at_ms: 900.0, normal: 1.0, dirty: 0.0, queued: 9, late: true}
      ],
      intervals: for(i <- -2..15, do: interval(i, p99_ms)),
      cpu:
        for i <- -4..30 do
          %{
            since_ms: 125.0 * i,
            at_ms: 125.0 * (i + 1),
            normal: if(i < 0, do: 0.1, else: 0.9),
            dirty: 0.0,
            other: 0.01,
            hosts: 0.0
          }
        end
    })
  end

  defp interval(i, p99_ms) do
    us = if i < 0 or p99_ms == nil, do: 900.0, else: 1000 * p99_ms

    %{
      since_ms: 250 * i,
      at_ms: 250 * (i + 1),
      hello_per_s: 500.0,
      hello_p50_us: us / 5,
      hello_p99_us: us,
      hello_p999_us: us,
      hello_max_us: us,
      jobs_per_s: if(i < 0, do: 0.0, else: 190.0),
      refused_per_s: 0.0
    }
  end

  defp capacity(server, kinds) do
    %{
      server: server,
      protocol: "h2",
      status: if(kinds, do: "ok", else: "failed"),
      reason: if(kinds, do: nil, else: "it did not answer"),
      per_s: if(kinds, do: 71_000.0),
      sent: 213_000,
      answered: 213_000,
      failed: 0,
      us_per_request: kinds,
      server_us_per_request: kinds && 20.6,
      client_cores: kinds && 0.4,
      spread: %{}
    }
  end

  defp limit(placement, held) do
    over = %{
      rate: 2 * (held || 6),
      status: "ok",
      reason: nil,
      hello_p99_us: 45_000.0,
      hello_planned: 2250,
      hello_refused: 0,
      hello_failed: 0,
      answered_per_s: 190.0,
      in_time: 0.97,
      sent: 800,
      refused: 300,
      failed: 12,
      recovered_ms: nil
    }

    %{
      placement: placement,
      job_us: 10_000,
      status: "ok",
      reason: nil,
      held_per_s: held,
      held_p99_us: held && 4000.0,
      steps: [over],
      overload: over
    }
  end
end
