defmodule Tame.Reductions.Turn do
  @moduledoc """
  One turn of one variant, run in a VM of its own: what another variant leaves in the allocators is not there.

  A large output is memory that the VM maps from the operating system, whose pages have to be found one by one, or
  memory that a call before has used and the VM has kept. So a turn is two calls, which are told apart: the first one,
  on *fresh pages*, and the second one, with the *pages at hand* that the first one has left. A small call comes before
  both: it loads the library, starts its threads, lets it measure its rate, and leaves memory for the instruments.

  Each call is made by a fresh process on the neighbour's scheduler. It records its own slices by trace, with the tracer
  on another scheduler, makes the one call, and then has the answer checked.
  """

  alias Tame.PageFaults
  alias Tame.Reductions.Input

  @typedoc """
  One call: how long it took, the page faults meanwhile, its slices (`:tame_slices`), how late the neighbour woke.
  Histograms are lists, as `:tame_histogram.to_list/1` makes them, because they leave the VM.
  """
  @type run :: %{
          elapsed_ns: non_neg_integer(),
          faults: PageFaults.faults(),
          reading: map(),
          neighbour: [{non_neg_integer(), pos_integer()}]
        }

  @type turn :: %{fresh: run(), at_hand: run()}

  @typedoc "What the lab's own instruments do where nothing is measured."
  @type floor :: %{
          slice_cost_ns: non_neg_integer(),
          neighbour_p99_us: float(),
          neighbour_max_us: float()
        }

  # Both processes that are to meet are put on this scheduler; every VM has it.
  @scheduler 1

  # Slices for the picture: more than a chart has pixels for points, and little to carry.
  @keep 400

  # Less than what gets memory of its own from the operating system.
  @small_bytes 65_536

  # Turns, yields in each and milliseconds from which the floor is read.
  @floor_turns 10
  @floor_yields 500
  @floor_ms 500

  @doc "Both calls of a variant. The error says what went wrong in one of them."
  @spec run({module(), atom()}, pos_integer()) :: {:ok, turn()} | {:error, String.t()}
  def run(function, bytes) do
    input = Input.new(bytes)

    with {:ok, _} <- in_process(fn -> measure(function, small(input)) end),
         {:ok, fresh} <- in_process(fn -> measure(function, input) end),
         {:ok, at_hand} <- in_process(fn -> measure(function, input) end),
         do: {:ok, %{fresh: fresh, at_hand: at_hand}}
  end

  @doc "What a traced slice costs the process that is recorded, and how late a neighbour wakes that nobody disturbs."
  @spec floor() :: {:ok, floor()} | {:error, String.t()}
  def floor do
    in_process(fn ->
      slice_cost_ns = slice_cost_ns()
      {:ok, neighbour} = :tame_neighbour.start(%{scheduler: @scheduler})
      Process.sleep(@floor_ms)
      late = :tame_neighbour.stop(neighbour)

      {:ok,
       %{
         slice_cost_ns: slice_cost_ns,
         neighbour_p99_us: :tame_histogram.percentile(late, 99.0) / 1000,
         neighbour_max_us: :tame_histogram.max(late) / 1000
       }}
    end)
  end

  defp small(%Input{bytes: bytes} = input) do
    bytes = min(bytes, @small_bytes)
    [a, b] = for all <- [input.a, input.b], do: binary_part(all, 0, bytes)
    %{input | bytes: bytes, a: a, b: b}
  end

  # ---- in the process that is measured -----------------------------------------------------

  # The neighbour first, so that the recording holds the call and nothing else.
  defp measure({module, function}, %Input{a: a, b: b} = input) do
    where = PageFaults.where(@scheduler)
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: @scheduler})
    before = PageFaults.read(where)
    {:ok, recording} = :tame_slices.start(self(), recording_options())
    started = System.monotonic_time()
    answer = apply(module, function, [a, b])
    ended = System.monotonic_time()
    reading = :tame_slices.stop(recording)
    faults = PageFaults.between(before, PageFaults.read(where))
    late = :tame_neighbour.stop(neighbour)

    # The answer is dropped here, so that its memory is at hand when the next call begins.
    right? = Input.right?(input, answer)
    :erlang.garbage_collect()

    if right? do
      {:ok,
       %{
         elapsed_ns: System.convert_time_unit(ended - started, :native, :nanosecond),
         faults: faults,
         reading: %{reading | normal: sent(reading.normal), dirty: sent(reading.dirty)},
         neighbour: :tame_histogram.to_list(late)
       }}
    else
      {:error, "what it returned is not the exclusive or of the two"}
    end
  end

  defp sent(share), do: %{share | histogram: :tame_histogram.to_list(share.histogram)}

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

  # Its end ends its neighbour and its tracer too.
  defp in_process(fun) do
    turn = self()
    ref = make_ref()

    {pid, monitor} =
      :erlang.spawn_opt(
        fn ->
          try do
            send(turn, {ref, fun.()})
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
          {^ref, result} -> result
        end

      {:DOWN, ^monitor, :process, ^pid, reason} ->
        {:error, explain(reason)}
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
