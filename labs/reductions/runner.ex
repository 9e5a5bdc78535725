defmodule Tame.Reductions.Runner do
  @moduledoc """
  Runs variants in turns and collects what was seen of them from outside.

  Each run is a fresh process on the neighbour's scheduler. It records its own slices by trace, with
  the tracer on another scheduler, makes the one call, and then has the answer checked. The variants
  take turns, round by round, and never do two run at once. A variant that fails is out; the others
  go on.
  """

  alias Tame.Reductions.{Input, Runner, Variants}

  defstruct [:variant, :status, :reason, runs: []]

  @typedoc "One call: how long it took, its slices (`:tame_slices`), how late the neighbour woke."
  @type run :: %{
          elapsed_ns: non_neg_integer(),
          reading: :tame_slices.reading(),
          neighbour: :tame_histogram.histogram()
        }

  @typedoc "What became of one variant; its runs in order."
  @type outcome :: %Runner{
          variant: Variants.variant(),
          status: :ok | :skipped | :failed,
          reason: nil | String.t(),
          runs: [run()]
        }

  @typedoc "What the lab's own instruments do where nothing is measured."
  @type floor :: %{
          slice_cost_ns: non_neg_integer(),
          neighbour_p99_us: float(),
          neighbour_max_us: float()
        }

  @typedoc "Told before each run; for progress shown to people."
  @type progress :: (%{what: String.t(), done: non_neg_integer(), total: pos_integer()} -> any())

  # Both processes that are to meet are put on this scheduler; every VM has it.
  @scheduler 1

  # Slices for the picture: more than a chart has pixels for points, and little to carry.
  @keep 400

  # 2 GB of memory that the machine has to find first take 10 s; this is far beyond.
  @stall_ms 300_000

  # Turns, yields in each and milliseconds from which the floor is read.
  @floor_turns 10
  @floor_yields 500
  @floor_ms 500

  @doc "Runs each variant once in each round. Blocks until all are done."
  @spec run([Variants.variant()], Input.t(), pos_integer(), progress()) :: [outcome()]
  def run(variants, %Input{} = input, rounds, progress \\ fn _ -> :ok end) do
    outcomes = Enum.map(variants, &open/1)
    total = rounds * Enum.count(outcomes, &(&1.status == :ok))

    {outcomes, _} =
      Enum.reduce(1..rounds, {outcomes, 0}, fn round, {outcomes, done} ->
        Enum.map_reduce(outcomes, done, fn
          %Runner{status: :ok, variant: %{id: id}} = outcome, done ->
            progress.(%{what: "#{id}, round #{round}", done: done, total: total})
            {turn(outcome, input), done + 1}

          outcome, done ->
            {outcome, done}
        end)
      end)

    for outcome <- outcomes, do: %{outcome | runs: Enum.reverse(outcome.runs)}
  end

  @doc "What a traced slice costs the process that is recorded, and how late a neighbour wakes that nobody disturbs."
  @spec floor() :: floor()
  def floor do
    {:ok, result} =
      in_process(fn ->
        slice_cost_ns = slice_cost_ns()
        {:ok, neighbour} = :tame_neighbour.start(%{scheduler: @scheduler})
        Process.sleep(@floor_ms)
        late = :tame_neighbour.stop(neighbour)

        %{
          slice_cost_ns: slice_cost_ns,
          neighbour_p99_us: :tame_histogram.percentile(late, 99.0) / 1000,
          neighbour_max_us: :tame_histogram.max(late) / 1000
        }
      end)

    result
  end

  defp open(variant) do
    case Variants.present(variant) do
      :ok -> %Runner{variant: variant, status: :ok}
      {:error, why} -> %Runner{variant: variant, status: :skipped, reason: why}
    end
  end

  defp turn(%Runner{variant: %{mfa: {module, function}}} = outcome, input) do
    case in_process(fn -> measure(module, function, input) end) do
      {:ok, {:ok, run}} -> %{outcome | runs: [run | outcome.runs]}
      {:ok, {:error, why}} -> failed(outcome, why)
      {:error, why} -> failed(outcome, why)
    end
  end

  defp failed(outcome, why), do: %{outcome | status: :failed, reason: why}

  # ---- in the process that is measured -----------------------------------------------------

  # The neighbour first, so that the recording holds the call and nothing else.
  defp measure(module, function, %Input{a: a, b: b} = input) do
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: @scheduler})
    {:ok, recording} = :tame_slices.start(self(), recording_options())
    started = System.monotonic_time()
    answer = apply(module, function, [a, b])
    ended = System.monotonic_time()
    reading = :tame_slices.stop(recording)
    late = :tame_neighbour.stop(neighbour)

    # The answer is dropped here, before the next run makes its own: with 2 GB it matters.
    right? = Input.right?(input, answer)
    :erlang.garbage_collect()

    if right? do
      elapsed_ns = System.convert_time_unit(ended - started, :native, :nanosecond)
      {:ok, %{elapsed_ns: elapsed_ns, reading: reading, neighbour: late}}
    else
      {:error, "what it returned is not the exclusive or of the two"}
    end
  end

  # The tracer is busy while the process runs: it gets another scheduler, where there is one.
  defp recording_options do
    case System.schedulers_online() do
      1 -> %{keep: @keep}
      _ -> %{keep: @keep, scheduler: @scheduler + 1}
    end
  end

  # The least of several, with and without trace by turns: what else the machine did is not meant.
  defp slice_cost_ns do
    {bare, traced} = Enum.unzip(for _ <- 1..@floor_turns, do: {yields_ns(), traced_yields_ns()})
    max(0, div(Enum.min(traced) - Enum.min(bare), @floor_yields))
  end

  defp traced_yields_ns do
    {:ok, recording} = :tame_slices.start(self(), recording_options())
    traced_ns = yields_ns()
    _ = :tame_slices.stop(recording)
    traced_ns
  end

  defp yields_ns do
    started = System.monotonic_time(:nanosecond)
    for _ <- 1..@floor_yields, do: :erlang.yield()
    System.monotonic_time(:nanosecond) - started
  end

  # ---- a process on the neighbour's scheduler ------------------------------------------------

  # Ending the process ends its neighbour and its tracer too.
  defp in_process(fun) do
    lab = self()
    ref = make_ref()

    {pid, monitor} =
      :erlang.spawn_opt(
        fn ->
          try do
            send(lab, {ref, fun.()})
          catch
            # The lab shows the sentence, so the process ends without a crash report of its own.
            kind, reason -> exit({:shutdown, sentence(kind, reason, __STACKTRACE__)})
          end
        end,
        # See tame_neighbour for the option that is not documented.
        [:monitor, scheduler: @scheduler]
      )

    receive do
      {:DOWN, ^monitor, :process, ^pid, :normal} ->
        receive do
          {^ref, result} -> {:ok, result}
        end

      {:DOWN, ^monitor, :process, ^pid, reason} ->
        {:error, explain(reason)}
    after
      @stall_ms ->
        Process.exit(pid, :kill)
        Process.demonitor(monitor, [:flush])
        {:error, "did not end within #{div(@stall_ms, 1000)} s"}
    end
  end

  defp sentence(:error, reason, stack) do
    :error |> Exception.normalize(reason, stack) |> Exception.message() |> first_line()
  end

  defp sentence(kind, reason, stack) do
    kind |> Exception.format_banner(reason, stack) |> String.trim_leading("** ") |> first_line()
  end

  defp explain({:shutdown, why}) when is_binary(why), do: why
  defp explain(:killed), do: "its process was killed"
  defp explain(reason), do: reason |> Exception.format_exit() |> first_line()

  defp first_line(text), do: text |> String.split("\n") |> hd()
end
