defmodule Tame.IsolationFixture do
  @moduledoc """
  A result of the isolation lab as the lab returns it: three ways by three sizes, one of which failed with the
  largest, two crashes, and memory that stays. The figures are made up from typical runs.
  """

  # Bytes, then p50 and p99 in µs.
  @calls [
    {16, isolated: {0.6, 9.0}, nif_dirty_cpu: {3.0, 8.0}, port: {45.0, 70.0}},
    {4096, isolated: {2.5, 20.0}, nif_dirty_cpu: {3.0, 9.0}, port: {48.0, 75.0}},
    {1_048_576, isolated: {340.0, 900.0}, nif_dirty_cpu: {3.1, 10.0}, port: nil}
  ]

  @doc "The result."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.isolation",
      format: 1,
      system: [tame: "0.1.0", command: "mix tame.isolation --quick", otp: "25"],
      warnings: [%{id: :too_few_samples, text: "Few calls."}],
      command: "mix tame.isolation --quick",
      iterations: 1000,
      rounds: 5,
      seed: 7,
      calls: for({bytes, ways} <- @calls, {id, figures} <- ways, do: row(bytes, id, figures)),
      crashes: %{status: "ok", reason: nil, crashes: [crash(1.5, 12.0), crash(2.5, 30.0)]},
      memory: %{
        status: "ok",
        reason: nil,
        sizes: [16, 4096],
        rows: for(n <- 0..10, do: memory(n * 10_000))
      }
    }
  end

  @doc "The result, with neither crashes nor memory measured."
  @spec failed(String.t()) :: map()
  def failed(why) do
    %{
      result()
      | calls: for(row <- result().calls, do: %{row(row.bytes, row.method, nil) | reason: why}),
        crashes: %{status: "failed", reason: why, crashes: []},
        memory: %{status: "failed", reason: why, sizes: [16], rows: []}
    }
  end

  @doc "Memory of the VM and of the host, by the number of calls made."
  @spec memory(non_neg_integer()) :: map()
  def memory(calls) do
    %{
      calls: calls,
      us_per_call: if(calls > 0, do: 9.5),
      vm_bytes: 18_800_000,
      vm_rss_bytes: 48_000_000,
      host_bytes: 2_700_000,
      atoms: 14_575,
      processes: 55
    }
  end

  defp row(bytes, id, figures) do
    {p50, p99} = figures || {nil, nil}

    %{
      bytes: bytes,
      method: to_string(id),
      isolation: if(id == :nif_dirty_cpu, do: "shared", else: "process"),
      status: if(figures, do: "ok", else: "failed"),
      reason: if(figures, do: nil, else: "tame_echo ended with exit status 1"),
      count: if(figures, do: 1000, else: 0),
      p50_us: p50,
      p50_spread_us: if(p50, do: [0.9 * p50, 1.1 * p50]),
      p99_us: p99
    }
  end

  defp crash(raised_ms, answered_ms) do
    last = round(answered_ms) + 20

    %{
      error: "sigsegv",
      raised_ms: raised_ms,
      answered_ms: answered_ms,
      others_failed: 1,
      calls: for(ms <- -20..last, do: [ms, if(ms in 0..round(answered_ms), do: 0, else: 900)])
    }
  end
end
