defmodule Tame.LatencyFixture do
  @moduledoc """
  A result of the latency lab as the lab returns it: all methods, one skipped, one failed.

  The figures are made up from a typical run with 64 KiB on two cores; the tails are computed, so the same at each call.
  """

  @count 100_000

  # id, isolation, data type, context switch, then p50, p90, p99, p99.9, max, mean in µs, GC runs.
  @methods [
    {"beam_call", "none", "Erlang term", "none", {0.031, 0.034, 0.052, 0.12, 14.2, 0.033}, 0},
    {"beam_process", "none", "Erlang term", "message to a process, same VM",
     {0.84, 1.12, 2.9, 8.4, 212.0, 0.98}, 12},
    {"nif_normal", "shared", "Erlang term", "none", {0.072, 0.081, 0.14, 0.61, 31.5, 0.077}, 0},
    {"nif_yielding", "shared", "Erlang term", "one hop, same scheduler",
     {0.21, 0.24, 0.46, 3.1, 88.0, 0.23}, 0},
    {"nif_dirty_cpu", "shared", "Erlang term", "dirty CPU scheduler and back",
     {2.98, 4.41, 11.2, 38.6, 904.0, 3.42}, 3},
    {"nif_dirty_io", "shared", "Erlang term", "dirty I/O scheduler and back",
     {3.07, 4.62, 12.0, 41.3, 1180.0, 3.55}, 3},
    {"nif_yielding_dirty", "shared", "Erlang term", "one hop to a dirty CPU scheduler and back",
     {3.11, 4.58, 11.7, 40.2, 951.0, 3.6}, 4},
    {"nif_thread_new", "shared", "Erlang term, copied", "new OS thread, answer by message",
     {21.4, 29.8, 71.0, 214.0, 4210.0, 24.6}, 96},
    {"nif_thread_queue", "shared", "Erlang term, copied", "worker thread, answer by message",
     {7.9, 12.6, 33.1, 97.0, 2310.0, 9.4}, 94},
    {"driver_call", "shared", "external term format", "none", {4.6, 5.3, 9.8, 26.0, 640.0, 4.9},
     410},
    {"driver_control", "shared", "external term format", "none", {4.3, 5.0, 9.1, 24.4, 702.0, 4.6},
     408},
    {"driver_outputv", "shared", "external term format", "answer by message", nil, 0},
    {"driver_async", "shared", "external term format",
     "thread of the async pool, answer by message", {14.8, 21.9, 52.0, 148.0, 3050.0, 17.2}, 421},
    {"isolated", "process", "Erlang term", "OS process, shared memory",
     {0.71, 0.92, 3.6, 57.0, 640.0, 1.1}, 2},
    {"port", "process", "external term format", "OS process, two pipes",
     {180.0, 226.0, 391.0, 1190.0, 12_345.0, 192.0}, 812},
    {"socket_unix", "process", "external term format", "OS process, local socket",
     {96.0, 131.0, 262.0, 830.0, 9120.0, 104.0}, 801},
    {"socket_tcp", "process", "external term format", "OS process, loopback TCP",
     {118.0, 160.0, 304.0, 921.0, 10_400.0, 127.0}, 803},
    {"c_node", "network", "external term format", "OS process, Erlang distribution",
     {142.0, 190.0, 371.0, 1420.0, 22_800.0, 158.0}, 611},
    {"java_node", "network", "external term format", "JVM, Erlang distribution", nil, 0}
  ]

  @troubles %{
    "driver_outputv" => {"failed", "the port ended after 31,204 calls (exit status 139)"},
    "java_node" => {"skipped", "no JDK here; install default-jdk-headless and erlang-jinterface"}
  }

  @doc "The result, its `:system` as the lines that a report shows."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.latency",
      format: 1,
      system: [
        {"tame", "0.1.0"},
        {"command", "mix tame.latency --bytes 65536 --iterations 100000 --html report/index.html"},
        {"Erlang/OTP", "25"},
        {"ERTS", "13.1.5"},
        {"Elixir", "1.14.0"},
        {"emulator", "jit"},
        {"schedulers", "2"},
        {"dirty CPU schedulers", "2"},
        {"dirty I/O schedulers", "10"},
        {"busy wait", "sbwt medium (default), sbwtdcpu short (default), sbwtdio short (default)"},
        {"OS", "Debian GNU/Linux 12 (bookworm)"},
        {"kernel", "x86_64-pc-linux-gnu unix 6.1.0"},
        {"CPU", "AMD EPYC 7B13"},
        {"cores", "2"},
        {"CPU quota", "none"},
        {"memory", "7954 MB"}
      ],
      warnings: [
        %{
          id: :machine_busy,
          text:
            "The load average was 1.4 on 2 cores before the run: something else was running. " <>
              "Compare figures of this one run with each other, not with other runs."
        },
        %{
          id: :overhead_visible,
          text:
            "The meter itself costs 0.031 µs (beam_call), which is part of every row; for nif_normal it is 43 % of p50."
        }
      ],
      payload_bytes: 65_536,
      iterations: @count,
      rounds: 10,
      command: "mix tame.latency --bytes 65536 --iterations 100000 --html report/index.html",
      methods: Enum.map(@methods, &method/1)
    }
  end

  @doc "The result with `change` made to the method called `id`."
  @spec update(map(), String.t(), map()) :: map()
  def update(result, id, change) do
    Map.update!(result, :methods, fn methods ->
      for method <- methods, do: if(method.id == id, do: Map.merge(method, change), else: method)
    end)
  end

  @doc "The result of a run with `--only` these methods."
  @spec only(map(), [String.t()]) :: map()
  def only(result, ids) do
    Map.update!(result, :methods, fn methods -> Enum.filter(methods, &(&1.id in ids)) end)
  end

  @doc "What a method that was not measured looks like."
  @spec blank(String.t(), String.t()) :: map()
  def blank(status, reason) do
    %{
      status: status,
      reason: reason,
      count: 0,
      p50_us: nil,
      p90_us: nil,
      p99_us: nil,
      p999_us: nil,
      max_us: nil,
      mean_us: nil,
      gc_runs: 0,
      percentiles: []
    }
  end

  defp method({id, isolation, data_type, context_switch, nil, _gc_runs}) do
    {status, reason} = Map.fetch!(@troubles, id)

    Map.merge(blank(status, reason), %{
      id: id,
      isolation: isolation,
      data_type: data_type,
      context_switch: context_switch
    })
  end

  defp method({id, isolation, data_type, context_switch, {p50, p90, p99, p999, max, mean}, gc_runs}) do
    %{
      id: id,
      status: "ok",
      reason: nil,
      isolation: isolation,
      data_type: data_type,
      context_switch: context_switch,
      count: @count,
      p50_us: p50,
      p90_us: p90,
      p99_us: p99,
      p999_us: p999,
      max_us: max,
      mean_us: mean,
      gc_runs: gc_runs,
      percentiles:
        percentiles([
          {0.0, p50 * 0.82},
          {50.0, p50},
          {90.0, p90},
          {99.0, p99},
          {99.9, p999},
          {99.999, max}
        ])
    }
  end

  # Five steps for each halving of the distance to 100 %, between the known points on a straight
  # line of the report's own axes.
  defp percentiles(known) do
    steps = for half <- 0..15, step <- 0..4, do: 100 - 100 / :math.pow(2, half) * (1 - step / 10)
    rows = for percentile <- steps, percentile <= 99.999, do: [percentile, at(known, percentile)]
    {_, max} = List.last(known)
    rows ++ [[100.0, max]]
  end

  defp at([{p1, us1}, {p2, us2} | _], percentile) when percentile <= p2 do
    part = (distance(percentile) - distance(p1)) / (distance(p2) - distance(p1))
    us1 * :math.pow(us2 / us1, part)
  end

  defp at([_ | known], percentile), do: at(known, percentile)

  defp distance(percentile), do: :math.log(100 / (100 - percentile))
end
