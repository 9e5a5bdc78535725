defmodule Tame.Latency.Runner do
  @moduledoc """
  Runs methods in turns and collects their samples.

  Each method lives in a process of its own with a grown heap. The methods take turns, round by round, one for each term,
  so that drift of the machine affects all alike, and each round has an order of its own, drawn from a seed, so that no
  turn always follows the same one; never do two run at once. One round before the counted ones warms up and is not
  counted. A method that fails is out, with all terms; the others go on.
  """

  alias Tame.Latency.Runner
  alias Tame.Turns

  defstruct [:module, :pid, :monitor, :histogram, :status, :reason, gc_runs: 0, p50s_ns: []]

  @typedoc "What became of one method with one term. `:p50s_ns` has the median of each counted turn."
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
  Measures `iterations` calls of each method with each term, in `rounds` turns. Blocks until all are done and every
  method is closed. Returns for each term the outcome of each method.
  """
  @spec run([module()], [term()], pos_integer(), pos_integer(), Turns.seed(), progress()) ::
          [[outcome()]]
  def run(modules, terms, iterations, rounds, seed, progress \\ fn _ -> :ok end) do
    methods =
      for {module, number} <- Enum.with_index(modules),
          opened = open(module, terms),
          place <- places(terms),
          into: %{},
          do: {{place, number}, %{opened | histogram: :tame_histogram.new()}}

    try do
      sizes = [{:warm_up, div(iterations, rounds) |> max(1)} | counted(iterations, rounds)]
      started = for {key, %{status: :ok}} <- Enum.sort(methods), do: key

      turns =
        for {order, size} <- started |> Turns.rounds(length(sizes), seed) |> Enum.zip(sizes),
            key <- order,
            do: {key, size}

      methods =
        turns
        |> Enum.with_index()
        |> Enum.reduce(methods, fn {{{place, _} = key, size}, done}, methods ->
          method = turn(methods[key], place, size, done, length(turns), progress)
          put(methods, key, method)
        end)

      for place <- places(terms) do
        for {{^place, _}, method} <- Enum.sort(methods),
            do: %{method | p50s_ns: Enum.reverse(method.p50s_ns)}
      end
    after
      methods |> Map.values() |> Enum.uniq_by(& &1.pid) |> Enum.each(&close/1)
    end
  end

  # The terms' places, from 0.
  defp places(terms), do: Enum.to_list(0..(length(terms) - 1)//1)

  defp put(methods, key, %Runner{status: :ok} = method), do: %{methods | key => method}

  # One process has all terms.
  defp put(methods, {_, number}, %Runner{status: status, reason: why}) do
    Map.new(methods, fn
      {{_, ^number} = key, method} -> {key, ended(method, status, why)}
      other -> other
    end)
  end

  # The counted turns: as even as whole numbers allow, none of them empty.
  defp counted(iterations, rounds) do
    rounds = min(rounds, iterations)

    for round <- 1..rounds do
      {round, div(iterations * round, rounds) - div(iterations * (round - 1), rounds)}
    end
  end

  defp open(module, terms) do
    runner = self()

    {pid, monitor} =
      :erlang.spawn_opt(fn -> worker(module, List.to_tuple(terms), runner) end, [
        :monitor,
        min_heap_size: @heap_words
      ])

    method = %Runner{module: module, pid: pid, monitor: monitor, status: :ok}

    receive do
      {^pid, :opened} -> method
      {^pid, {:skip, why}} -> ended(method, :skipped, why)
      {^pid, {:error, why}} -> ended(method, :failed, why)
      {:DOWN, ^monitor, :process, ^pid, reason} -> ended(method, :failed, explain(reason))
    after
      @open_ms -> fail(method, "did not start within #{div(@open_ms, 1000)} s")
    end
  end

  defp turn(%Runner{status: :ok} = method, place, {round, count}, done, total, progress) do
    histogram = :tame_histogram.new()
    part = if round == :warm_up, do: "warm-up", else: "round #{round}"
    progress.(%{what: "#{method.module.describe().id}, #{part}", done: done, total: total})
    send(method.pid, {:turn, place, count, histogram})

    case await(method, histogram, -1) do
      {:ok, gc_runs} when round != :warm_up -> add(method, histogram, gc_runs)
      {:ok, _} -> method
      ended -> ended
    end
  end

  defp turn(method, _place, _size, _done, _total, _progress), do: method

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
  defp worker(module, terms, runner) do
    Process.monitor(runner)

    case module.open() do
      {:ok, state} ->
        send(runner, {self(), :opened})
        serve(module, state, terms, runner)

      {kind, why} when kind in [:skip, :error] ->
        send(runner, {self(), {kind, why}})
    end
  rescue
    # The runner shows the sentence, so the process ends without a crash report of its own.
    error -> exit({:shutdown, Exception.message(error)})
  end

  defp serve(module, state, terms, runner) do
    receive do
      {:turn, place, count, histogram} ->
        :erlang.garbage_collect()
        result = :tame_meter.run(&module.echo/2, state, elem(terms, place), count, histogram)
        send(runner, {self(), result})
        serve(module, state, terms, runner)

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
