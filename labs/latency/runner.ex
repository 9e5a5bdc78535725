defmodule Tame.Latency.Runner do
  @moduledoc """
  Runs methods in turns and collects their samples.

  Each method lives in a process of its own with a grown heap. The methods take turns, round by round, so that drift of
  the machine affects all alike, and each round has an order of its own, drawn from a seed, so that no method always
  follows the same one; never do two run at once. One round before the counted ones warms up and is not counted. A
  method that fails is out; the others go on.
  """

  alias Tame.Latency.Runner
  alias Tame.Turns

  defstruct [:module, :pid, :monitor, :histogram, :status, :reason, gc_runs: 0, p50s_ns: []]

  @typedoc "What became of one method. `:p50s_ns` has the median of each counted turn."
  @type outcome :: %Runner{
          module: module(),
          histogram: :tame_histogram.histogram(),
          status: :ok | :skipped | :failed,
          reason: nil | String.t(),
          gc_runs: non_neg_integer(),
          p50s_ns: [non_neg_integer()]
        }

  @typedoc "Told before each turn; for progress shown to people."
  @type progress :: (%{what: String.t(), done: non_neg_integer(), total: pos_integer()} -> any())

  # Words. Large enough that a call's own garbage is collected seldom and cheaply, small enough
  # to stay in the cache's reach.
  @heap_words 1_000_000

  # A method that completes no call for this long is ended: the histogram ends there too.
  @stall_ms 60_000

  # Starting a method may take the start of a Java machine.
  @open_ms 60_000
  @close_ms 10_000

  @doc """
  Measures `iterations` calls of each method in `rounds` turns. Blocks until all are done and every
  method is closed.
  """
  @spec run([module()], term(), pos_integer(), pos_integer(), Turns.seed(), progress()) ::
          [outcome()]
  def run(modules, term, iterations, rounds, seed, progress \\ fn _ -> :ok end) do
    methods =
      modules |> Enum.map(&open(&1, term)) |> Enum.with_index() |> Map.new(fn {m, i} -> {i, m} end)

    try do
      sizes = [{:warm_up, div(iterations, rounds) |> max(1)} | counted(iterations, rounds)]
      started = for {index, %{status: :ok}} <- Enum.sort(methods), do: index

      turns =
        for {order, size} <- started |> Turns.rounds(length(sizes), seed) |> Enum.zip(sizes),
            index <- order,
            do: {index, size}

      turns
      |> Enum.with_index()
      |> Enum.reduce(methods, fn {{index, size}, done}, methods ->
        Map.update!(methods, index, &turn(&1, size, done, length(turns), progress))
      end)
      |> Enum.sort()
      |> Enum.map(fn {_, method} -> %{method | p50s_ns: Enum.reverse(method.p50s_ns)} end)
    after
      methods |> Map.values() |> Enum.each(&close/1)
    end
  end

  # The counted turns: as even as whole numbers allow, none of them empty.
  defp counted(iterations, rounds) do
    rounds = min(rounds, iterations)

    for round <- 1..rounds do
      {round, div(iterations * round, rounds) - div(iterations * (round - 1), rounds)}
    end
  end

  defp open(module, term) do
    runner = self()

    {pid, monitor} =
      :erlang.spawn_opt(fn -> worker(module, term, runner) end, [
        :monitor,
        min_heap_size: @heap_words
      ])

    method = %Runner{
      module: module,
      pid: pid,
      monitor: monitor,
      histogram: :tame_histogram.new(),
      status: :ok
    }

    receive do
      {^pid, :opened} -> method
      {^pid, {:skip, why}} -> ended(method, :skipped, why)
      {^pid, {:error, why}} -> ended(method, :failed, why)
      {:DOWN, ^monitor, :process, ^pid, reason} -> ended(method, :failed, explain(reason))
    after
      @open_ms -> fail(method, "did not start within #{div(@open_ms, 1000)} s")
    end
  end

  defp turn(%Runner{status: :ok} = method, {round, count}, done, total, progress) do
    histogram = :tame_histogram.new()
    part = if round == :warm_up, do: "warm-up", else: "round #{round}"
    progress.(%{what: "#{method.module.describe().id}, #{part}", done: done, total: total})
    send(method.pid, {:turn, count, histogram})

    case await(method, histogram, -1) do
      {:ok, gc_runs} when round != :warm_up -> add(method, histogram, gc_runs)
      {:ok, _} -> method
      ended -> ended
    end
  end

  defp turn(method, _size, _done, _total, _progress), do: method

  defp add(method, histogram, gc_runs) do
    :ok = :tame_histogram.merge(method.histogram, histogram)
    p50_ns = :tame_histogram.percentile(histogram, 50.0)
    %{method | gc_runs: method.gc_runs + gc_runs, p50s_ns: [p50_ns | method.p50s_ns]}
  end

  defp await(%Runner{pid: pid, monitor: monitor} = method, histogram, seen) do
    receive do
      {^pid, {:ok, %{gc_runs: gc_runs}}} ->
        {:ok, gc_runs}

      {^pid, {:error, {:different, back}}} ->
        close(method)

        ended(
          method,
          :failed,
          "the term came back as #{inspect(back, limit: 5, printable_limit: 40)}"
        )

      {:DOWN, ^monitor, :process, ^pid, reason} ->
        ended(method, :failed, explain(reason))
    after
      @stall_ms ->
        case :tame_histogram.count(histogram) do
          ^seen -> fail(method, "no call ended within #{div(@stall_ms, 1000)} s")
          count -> await(method, histogram, count)
        end
    end
  end

  # Ending the process ends what it opened; see Tame.Latency.Method.
  defp fail(%Runner{pid: pid, monitor: monitor} = method, why) do
    Process.exit(pid, :kill)

    receive do
      {:DOWN, ^monitor, :process, ^pid, _} -> ended(method, :failed, why)
    end
  end

  defp ended(method, status, why), do: %{method | status: status, reason: why, pid: nil}

  defp close(%Runner{pid: nil}), do: :ok

  # It may have ended, and its monitor with it.
  defp close(%Runner{pid: pid, monitor: opened}) do
    Process.demonitor(opened, [:flush])
    monitor = Process.monitor(pid)
    send(pid, :close)

    receive do
      {:DOWN, ^monitor, :process, ^pid, _} -> :ok
    after
      @close_ms -> Process.exit(pid, :kill)
    end
  end

  # ---- the process that measures -----------------------------------------------------------

  # It is linked to nobody who could be hurt, and watches the runner: without it nobody would
  # ever tell it to close.
  defp worker(module, term, runner) do
    Process.monitor(runner)

    case module.open() do
      {:ok, state} ->
        send(runner, {self(), :opened})
        serve(module, state, term, runner)

      {kind, why} when kind in [:skip, :error] ->
        send(runner, {self(), {kind, why}})
    end
  rescue
    # The runner shows the sentence, so the process ends without a crash report of its own.
    error -> exit({:shutdown, Exception.message(error)})
  end

  defp serve(module, state, term, runner) do
    receive do
      {:turn, count, histogram} ->
        :erlang.garbage_collect()
        result = :tame_meter.run(&module.echo/2, state, term, count, histogram)
        send(runner, {self(), result})
        serve(module, state, term, runner)

      :close ->
        module.close(state)

      {:DOWN, _, :process, ^runner, _} ->
        module.close(state)
    end
  end

  defp explain({:shutdown, why}) when is_binary(why), do: why
  defp explain(:killed), do: "its process was killed"
  defp explain(reason), do: Exception.format_exit(reason) |> String.split("\n") |> hd()
end
