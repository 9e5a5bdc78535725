defmodule Tame.Audit.Dynamic do
  @moduledoc """
  Calls a function in a VM of its own on inputs of growing size, and says what it saw.

  A size is not tried when, judging by the sizes before it, it would take longer than the limit, or when the audit's
  total time budget has run out. A call that hangs is ended with its VM.
  """

  alias Tame.Audit.{Advice, Growth, Peer, Point, Verdict}
  alias Tame.{Duration, FunctionName}

  @typedoc "What was seen of one function. `:about` is its input in words, `:notes` what was not tried and why."
  @type t :: %{
          target: String.t(),
          about: String.t(),
          budget_us: pos_integer(),
          points: [Point.t()],
          growth: Growth.t() | nil,
          crosses_budget_at_bytes: pos_integer() | nil,
          verdicts: [Verdict.t()],
          advice: String.t(),
          notes: [String.t()]
        }

  @typedoc """
  `:input` is `{about, generators}` or `{about, {:file, path}}`; `:up_to` the largest size in bytes; `:dirty` the kind of dirty scheduler that is looked at, and
  `:progress` is told before each size.
  """
  @type options :: %{
          input: {String.t(), [atom() | {:literal, term()}] | {:file, Path.t()}},
          budget_us: pos_integer(),
          limit_ms: pos_integer(),
          up_to: nil | pos_integer(),
          dirty: :dirty_cpu | :dirty_io,
          progress: (map() -> any())
        }

  @first_bytes 1024
  @factor 4

  # For all sizes together, so that a function takes less than half a minute by default.
  @total_ms 15_000

  # Calls of a size, those that are killed among them.
  @calls 6

  @loop_ms 250

  # From here on a call is long enough to be killed half-way.
  @killable_us 5_000

  # Beyond its limit, a call that would end by itself has ended.
  @grace_ms 2_000

  @doc "Audits one function. The error is one line that names it."
  @spec audit(mfa(), options()) :: {:ok, t()} | {:error, String.t()}
  def audit(mfa, options) do
    text = FunctionName.text(mfa)

    with {:ok, peer} <- Peer.start() do
      run = %{
        peer: peer,
        mfa: mfa,
        text: text,
        options: options,
        started: now_ms(),
        points: [],
        notes: [],
        end: nil
      }

      try do
        with :ok <- prepare(run),
             {:ok, sensible} <- load(run),
             most = min(sensible, options.up_to || sensible),
             {:ok, run} <- sizes(run, min(@first_bytes, most), most) do
          {:ok, run |> kill() |> conclude()}
        end
      after
        Peer.stop(peer)
      end
    end
  end

  defp prepare(%{text: text} = run) do
    case ask(run, :prepare, [run.mfa]) do
      {:ok, :ok} ->
        :ok

      {:ok, {:error, :no_module}} ->
        {:error, "#{text}: there is no module #{inspect(elem(run.mfa, 0))}"}

      {:ok, {:error, :no_function}} ->
        {:error, "#{text}: the module exports no such function"}

      {:ok, {:error, {:load, why}}} ->
        {:error, "#{text}: the module does not load: #{why}"}

      {:error, why} ->
        {:error, "#{text}: loading its module #{why}"}
    end
  end

  defp load(%{options: %{input: {_, {:file, path}}}} = run) do
    case Peer.call(run.peer, Tame.Audit.InputFile, :load, [path], run.options.limit_ms) do
      {:ok, :ok} -> {:ok, :tame_audit_input.most(:file)}
      {:ok, {:error, why}} -> {:error, "#{path}: #{one_line(why)}"}
      {:error, why} -> {:error, "#{path}: reading it #{why}"}
    end
  end

  defp load(%{options: %{input: {_, generators}}}), do: {:ok, :tame_audit_input.most(generators)}

  # ---- sizes ----------------------------------------------------------------------------------------

  defp sizes(run, bytes, most) when bytes > most, do: {:ok, run}

  defp sizes(run, bytes, most) do
    case not_tried(run, bytes) do
      nil ->
        run.options.progress.(%{
          what: "#{run.text}, #{bytes} bytes",
          done: length(run.points),
          total: 12
        })

        case size(run, bytes) do
          {:ok, point} -> sizes(%{run | points: run.points ++ [point]}, bytes * @factor, most)
          {:end, verdict} -> {:ok, %{run | end: verdict}}
          {:error, why} when run.points == [] -> {:error, "#{run.text}: #{why}"}
          {:error, why} -> {:ok, note(run, "#{bytes} bytes: #{why}")}
        end

      why ->
        {:ok, note(run, "#{bytes} bytes and more not tried: #{why}")}
    end
  end

  defp not_tried(%{points: []}, _bytes), do: nil

  defp not_tried(run, _bytes) do
    next_us = run.points |> Enum.map(& &1.elapsed_us) |> expected_us()
    limit_us = 1000 * run.options.limit_ms

    cond do
      next_us > limit_us ->
        "a call would take about #{Duration.measured(next_us)}, and the limit is #{Duration.measured(limit_us)}"

      now_ms() - run.started + @calls * next_us / 1000 > @total_ms ->
        "it would take too long"

      true ->
        nil
    end
  end

  # As much more as the last size took than the one before it, and no less than in proportion.
  defp expected_us([us]), do: @factor * us

  defp expected_us(all) do
    [before, last] = Enum.take(all, -2)
    last * max(@factor, last / max(before, 1))
  end

  defp size(run, bytes) do
    spec = spec(run, bytes)

    with {:ok, {:ok, first}} <- ask(run, :call, [spec]),
         {:ok, {:ok, more, shares}} <- ask(run, :again, [spec, times(first)]),
         calls = [first | more],
         {:ok, {loop, wait_ns}} <- loop(run, spec, first, shares) do
      {:ok, Point.new(bytes, calls, loop, shares, wait_ns)}
    else
      {:ok, {:error, :hangs}} ->
        {:end, {:hangs, bytes, 1000 * run.options.limit_ms}}

      {:ok, {:error, {:input, why}}} ->
        {:error, "the input #{one_line(why)}"}

      {:ok, {:error, {:raised, why}}} ->
        {:error, "raised #{one_line(why)} on #{bytes} bytes of #{elem(run.options.input, 0)}"}

      {:ok, {:error, {:died, why}}} ->
        {:error, "the audit's own process died: #{one_line(why)}"}

      {:error, "ended the VM with " <> how} ->
        {:end, {:crashes, bytes, how}}

      {:error, "did not return" <> _} ->
        {:end, {:hangs, bytes, 1000 * run.options.limit_ms}}

      {:error, why} ->
        {:error, why}
    end
  end

  # The longer, the less does a disturbance matter.
  defp times(%{elapsed_ns: ns}) when ns < 100_000_000, do: 2
  defp times(_first), do: 1

  # A call that is longer than the loop would be is the loop; but dirty threads have to be filled.
  defp loop(run, spec, first, shares) do
    dirty? = first.dirty.total_ns - shares.gc * first.elapsed_ns > first.normal.total_ns

    if dirty? or first.elapsed_ns < 1_000_000 * @loop_ms do
      callers = if dirty?, do: callers(run), else: 1

      case ask(run, :loop, [spec, %{ms: @loop_ms, callers: callers, dirty: run.options.dirty}]) do
        {:ok, {:ok, reading, wait_ns}} -> {:ok, {reading, wait_ns}}
        other -> other
      end
    else
      {:ok, {nil, nil}}
    end
  end

  defp callers(%{options: %{dirty: :dirty_cpu}}),
    do: :erlang.system_info(:dirty_cpu_schedulers_online)

  defp callers(%{options: %{dirty: :dirty_io}}), do: :erlang.system_info(:dirty_io_schedulers)

  # ---- killing its caller ---------------------------------------------------------------------------

  # Several times; the earliest end counts, because others on the machine can only make it later.
  @kills 3

  # CPU time is counted in portions of some milliseconds.
  @cpu_ns 25_000_000

  defp kill(%{points: [_ | _] = points, end: nil} = run) do
    case List.last(points) do
      %{elapsed_us: us, bytes: bytes} = point when us >= @killable_us ->
        after_ms = us |> ms(4) |> max(1) |> min(100)
        callers = if point.slice_kind == :dirty, do: callers(run), else: 1
        what = %{after_ms: after_ms, callers: callers}

        seen =
          for _ <- 1..@kills,
              {:ok, {:ok, seen}} <- [ask(run, :kill, [spec(run, bytes), what])],
              do: ended_us(seen, point.slice_kind)

        if length(seen) == @kills,
          do:
            Map.put(run, :killed, %{
              call_us: us,
              after_us: 1000 * after_ms,
              stopped_us: Enum.min(seen),
              bytes: bytes
            }),
          else: note(run, "what happens when the caller is killed could not be measured")

      _ ->
        note(
          run,
          "no call took #{div(@killable_us, 1000)} ms, so killed callers were not tried"
        )
    end
  end

  defp kill(run), do: run

  # Whether a dirty thread is free says nothing of a call that is on none.
  defp ended_us(%{down_ns: down, dirty_ns: dirty, cpu_ns: cpu}, kind) do
    Enum.max([down, if(kind == :dirty, do: dirty, else: 0), if(cpu > @cpu_ns, do: cpu, else: 0)]) /
      1000
  end

  defp ms(us, part), do: trunc(us / 1000 / part)

  # ---- the end --------------------------------------------------------------------------------------

  defp conclude(%{points: points, options: options} = run) do
    ended = if run.end, do: [run.end], else: []
    verdicts = ended ++ judged(points, run[:killed], options.budget_us, ended)

    %{
      target: run.text,
      about: "on #{elem(options.input, 0)}",
      budget_us: options.budget_us,
      points: points,
      growth: points |> Verdict.pairs() |> Growth.fit(),
      crosses_budget_at_bytes: Verdict.crosses(points, options.budget_us),
      verdicts: verdicts,
      advice: Advice.sentences(run.text, points, verdicts, options.budget_us),
      notes: run.notes
    }
  end

  # One that hangs or crashes is not well-behaved where it did not.
  defp judged(points, killed, budget_us, ended) do
    for verdict <- Verdict.judge(points, killed, budget_us),
        ended == [] or Verdict.name(verdict) != :well_behaved,
        do: verdict
  end

  defp spec(run, bytes) do
    input =
      if match?({_, {:file, _}}, run.options.input), do: :file, else: elem(run.options.input, 1)

    %{target: run.mfa, input: input, bytes: bytes, limit_ms: run.options.limit_ms}
  end

  # The peer says itself when a call hangs; when native code has all its schedulers, we do.
  defp ask(run, function, args) do
    parts = if function in [:call, :prepare], do: 1, else: 4
    Peer.call(run.peer, :tame_audit, function, args, parts * run.options.limit_ms + @grace_ms)
  end

  defp note(run, text), do: %{run | notes: run.notes ++ [text]}

  defp one_line(text),
    do: text |> to_string() |> String.split("\n", trim: true) |> Enum.map_join(" ", &String.trim/1)

  defp now_ms, do: System.monotonic_time(:millisecond)
end
