defmodule Tame.Latency.Runner do
  @moduledoc """
  Runs methods in turns and collects their samples.

  Each method lives in a process of its own with a grown heap. The methods take turns, round by round (A B C … A B C
  …), so that drift of the machine affects all alike; never do two run at once. One round before the counted ones
  warms up and is not counted. A method that fails is out; the others go on.
  """

  alias Tame.Latency.Runner

  defstruct [:module, :pid, :monitor, :histogram, :status, :reason, gc_runs: 0]

  @typedoc "What became of one method."
  @type outcome :: %Runner{
          module: module(),
          histogram: :tame_histogram.histogram(),
          status: :ok | :skipped | :failed,
          reason: nil | String.t(),
          gc_runs: non_neg_integer()
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
  @spec run([module()], term(), pos_integer(), pos_integer(), progress()) :: [outcome()]
  def run(modules, term, iterations, rounds, progress \\ fn _ -> :ok end) do
    methods = Enum.map(modules, &open(&1, term))

    try do
      sizes = [{:warm_up, div(iterations, rounds) |> max(1)} | turns(iterations, rounds)]
      total = length(sizes) * Enum.count(methods, &(&1.status == :ok))

      {methods, _} =
        sizes
        |> Enum.with_index()
        |> Enum.reduce({methods, 0}, fn {{kind, count}, round}, state ->
          Enum.map_reduce(elem(state, 0), elem(state, 1), fn method, done ->
            turn(method, kind, count, round, done, total, progress)
          end)
        end)

      methods
    after
      Enum.each(methods, &close/1)
    end
  end

  # The counted turns: as even as whole numbers allow, none of them empty.
  defp turns(iterations, rounds) do
    rounds = min(rounds, iterations)

    for round <- 1..rounds do
      {:counted, div(iterations * round, rounds) - div(iterations * (round - 1), rounds)}
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

  defp turn(%Runner{status: :ok} = method, kind, count, round, done, total, progress) do
    {part, histogram} =
      case kind do
        :warm_up -> {"warm-up", :tame_histogram.new()}
        :counted -> {"round #{round}", method.histogram}
      end

    progress.(%{what: "#{method.module.describe().id}, #{part}", done: done, total: total})
    send(method.pid, {:turn, count, histogram})
    {await(method, kind, histogram, -1), done + 1}
  end

  defp turn(method, _kind, _count, _round, done, _total, _progress), do: {method, done}

  defp await(%Runner{pid: pid, monitor: monitor} = method, kind, histogram, seen) do
    receive do
      {^pid, {:ok, %{gc_runs: gc_runs}}} when kind == :counted ->
        %{method | gc_runs: method.gc_runs + gc_runs}

      {^pid, {:ok, _}} ->
        method

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
          count -> await(method, kind, histogram, count)
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

  defp close(%Runner{pid: pid, monitor: monitor}) do
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
