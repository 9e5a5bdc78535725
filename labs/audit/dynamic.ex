defmodule Tame.Audit.Dynamic do
  @moduledoc """
  Calls a function in a VM of its own on inputs of growing size, and says what it saw.

  A size is not tried when, judging by the sizes before it, it would take longer than the limit, or when the audit's
  total time budget has run out. A call that hangs is ended with its VM. After the sizes come calls whose caller is
  killed, and calls in a row whose memory is looked at (`Tame.Audit.Leak`).
  """

  alias Tame.Audit.{Advice, Growth, Held, Input, Kill, Leak, Peer, Point, Verdict}
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
  `:input` is `{about, generators}` or `{about, {:file, path}}`; `:up_to` the largest size in bytes, which then is the last
  one and has to be reached; `:total_ms` the time for all sizes, `:dirty` the kind of dirty scheduler that is looked at, and `:progress` is
  told before each size.
  """
  @type options :: %{
          input: {String.t(), [atom() | {:literal, term()}] | {:file, Path.t()}},
          budget_us: pos_integer(),
          limit_ms: pos_integer(),
          up_to: nil | pos_integer(),
          total_ms: nil | pos_integer(),
          dirty: :dirty_cpu | :dirty_io,
          progress: (map() -> any())
        }

  @first_bytes 1024
  @factor 4

  # For all sizes together, so that a function takes less than half a minute by default. Who names a size waits for it.
  @total_ms 15_000
  @named_total_ms 60_000

  # Calls of a size, those that are killed among them.
  @calls 6

  @loop_ms 250

  # Where a single call went well.
  @in_a_row "only when it is called in a row"
  @killed "only when its caller is killed"

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
        ended: [],
        application: nil,
        killed: nil,
        leak: nil
      }

      try do
        with {:ok, run} <- prepare(run),
             :ok <- load(run),
             {:ok, most} <- most(run),
             {:ok, run} <- sizes(run, min(@first_bytes, most), most) do
          {:ok, run |> leak() |> kill() |> conclude()}
        end
      after
        Peer.stop(peer)
      end
    end
  end

  defp prepare(%{text: text} = run) do
    case Peer.call(run.peer, :tame_audit_load, :prepare, [run.mfa], run.options.limit_ms) do
      {:ok, {:ok, application}} ->
        {:ok, application(run, application)}

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

  defp application(run, {:started, name}),
    do: note(run, "the application #{name} was started: it may load the library")

  defp application(run, {:not_started, name, why}),
    do:
      note(
        run,
        "the application #{name}, which may load the library, does not start: #{one_line(why)}"
      )

  defp application(run, {:idle, name}), do: %{run | application: name}
  defp application(run, :none), do: run

  defp load(%{options: %{input: {_, {:file, path}}}} = run) do
    case Peer.call(run.peer, Tame.Audit.InputFile, :load, [path], run.options.limit_ms) do
      {:ok, :ok} -> :ok
      {:ok, {:error, why}} -> {:error, "#{path}: #{one_line(why)}"}
      {:error, why} -> {:error, "#{path}: reading it #{why}"}
    end
  end

  defp load(_run), do: :ok

  defp most(%{options: %{input: input, up_to: nil}}), do: {:ok, Input.most(input)}

  defp most(%{text: text, options: %{input: input, up_to: up_to}}) do
    with :ok <- Input.reaches(input, text, up_to), do: {:ok, up_to}
  end

  # ---- sizes ----------------------------------------------------------------------------------------

  defp sizes(run, bytes, most) do
    case not_tried(run, bytes) do
      nil ->
        run.options.progress.(%{
          what: "#{run.text}, #{bytes} bytes",
          done: length(run.points),
          total: 12
        })

        case size(run, bytes) do
          {:ok, point, refused} ->
            run = refused(%{run | points: run.points ++ [point]}, bytes, refused)
            if bytes == most, do: {:ok, run}, else: sizes(run, min(bytes * @factor, most), most)

          {:end, verdict} ->
            {:ok, ended(run, verdict)}

          {:end, verdict, only} ->
            {:ok, run |> ended(verdict) |> note("it does so " <> only)}

          {:error, why} when run.points == [] ->
            {:error, failed(run, why)}

          {:error, why} ->
            {:ok, inconclusive(run, why)}
        end

      why when run.options.up_to != nil ->
        {:ok, inconclusive(run, "#{bytes} bytes and more not tried: #{why}")}

      why ->
        {:ok, note(run, "#{bytes} bytes and more not tried: #{why}")}
    end
  end

  defp inconclusive(run, why), do: ended(run, {:inconclusive, List.last(run.points).bytes, why})

  defp ended(run, verdict), do: %{run | ended: run.ended ++ [verdict]}

  # What is known of a function that could not be called at all, in one line.
  defp failed(run, why) do
    hints =
      [
        match?({_, {:file, _}}, run.options.input) ||
          "arguments of another kind, a handle for example, come from --input-file FILE",
        run.application == nil ||
          "the application #{run.application} is not started, which that file may do"
      ]
      |> Enum.filter(&is_binary/1)

    if why =~ ~r/^raised/ and not String.ends_with?(why, @in_a_row),
      do: Enum.join(["#{run.text}: #{why}" | run.notes ++ hints], "; "),
      else: "#{run.text}: #{why}"
  end

  defp not_tried(%{points: []}, _bytes), do: nil

  defp not_tried(run, bytes) do
    next_us = expected_us(run.points, bytes)
    limit_us = 1000 * run.options.limit_ms

    cond do
      next_us > limit_us ->
        "a call would take about #{Duration.measured(next_us)}, and the limit is #{Duration.measured(limit_us)}"

      now_ms() - run.started + @calls * next_us / 1000 > total_ms(run.options) ->
        "it would take too long"

      true ->
        nil
    end
  end

  defp total_ms(%{total_ms: ms}) when ms != nil, do: ms
  defp total_ms(%{up_to: nil}), do: @total_ms
  defp total_ms(_options), do: @named_total_ms

  # As much more as the last size took than the one before it, and no less than in proportion; of the largest size,
  # which may be less than fourfold, as much of that as its step is.
  defp expected_us(points, bytes) do
    last = List.last(points)

    growth =
      case Enum.take(points, -2) do
        [_] -> @factor
        [before, _] -> max(@factor, last.elapsed_us / max(before.elapsed_us, 1))
      end

    last.elapsed_us * :math.pow(growth, :math.log(bytes / last.bytes) / :math.log(@factor))
  end

  defp size(run, bytes) do
    spec = spec(run, bytes)

    with {:ok, {:ok, first}} <- ask(run, :call, [spec]),
         {:ok, {:ok, more, shares}} <- ask(run, :again, [spec, times(first)]),
         calls = [first | more],
         {:ok, descriptors} <- descriptors(run, spec, first),
         {:row, loop, wait_ns} <- loop(run, spec, first, shares),
         point = Point.new(bytes, calls, loop, shares, wait_ns),
         {:ok, held} <- held(run, spec, point, loop) do
      {:ok, %{point | held: held, descriptors: descriptors}, first.refused}
    else
      {:in_a_row, failure} ->
        case failure(failure, bytes, run) do
          {:end, verdict} -> {:end, verdict, @in_a_row}
          {:error, "raised" <> _ = why} -> {:error, why <> ", " <> @in_a_row}
          error -> error
        end

      {:ok, failure} ->
        failure(failure, bytes, run)

      failure ->
        failure(failure, bytes, run)
    end
  end

  # What a call came to that did not go well: a verdict, or why nothing is known of it.
  defp failure({:error, :hangs}, bytes, run),
    do: {:end, {:hangs, bytes, 1000 * run.options.limit_ms}}

  defp failure({:error, "did not return" <> _}, bytes, run),
    do: failure({:error, :hangs}, bytes, run)

  defp failure({:error, "ended the VM with " <> how}, bytes, _), do: {:end, {:crashes, bytes, how}}
  defp failure({:error, {:raised, why}}, bytes, run), do: {:error, raised(why, bytes, run)}
  defp failure({:error, {:input, why}}, _bytes, _run), do: {:error, "the input #{one_line(why)}"}

  defp failure({:error, {:slow, calls}}, _bytes, _run),
    do: {:error, "#{calls} calls in a row took longer than the limit"}

  defp failure({:error, {:died, why}}, _bytes, _run),
    do: {:error, "the audit's own process died: #{one_line(why)}"}

  defp failure({:error, why}, _bytes, _run), do: {:error, why}

  defp raised(why, bytes, run),
    do: "raised #{one_line(why)} on #{bytes} bytes of #{elem(run.options.input, 0)}"

  # Said once: what an error takes says little of what the work takes.
  defp refused(run, _bytes, :none), do: run

  defp refused(run, bytes, what) do
    if Enum.any?(run.notes, &(&1 =~ ~r/^answers /)),
      do: run,
      else:
        note(
          run,
          "answers #{one_line(what)} from #{bytes} bytes on: are these the arguments that it expects?"
        )
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
        {:ok, {:ok, reading, wait_ns}} -> {:row, reading, wait_ns}
        {:ok, failure} -> {:in_a_row, failure}
        error -> {:in_a_row, error}
      end
    else
      {:row, nil, nil}
    end
  end

  # Where a slice of the row was long and that of a call was not: was it one call, each time?
  defp held(%{options: %{budget_us: budget_us}} = run, spec, point, loop) do
    if Verdict.row_longer?(point, loop, budget_us) and Enum.all?(run.points, &(&1.held == nil)) do
      row = fn least_ns ->
        with {:ok, answer} <- ask(run, :held, [spec, %{ms: @loop_ms, least_ns: least_ns}]),
             do: answer
      end

      with {:error, _} = failure <- Held.look(Verdict.clearly_us(budget_us), row),
           do: {:in_a_row, failure}
    else
      {:ok, nil}
    end
  end

  defp callers(%{options: %{dirty: :dirty_cpu}}),
    do: :erlang.system_info(:dirty_cpu_schedulers_online)

  defp callers(%{options: %{dirty: :dirty_io}}), do: :erlang.system_info(:dirty_io_schedulers)

  # ---- its memory -----------------------------------------------------------------------------------

  # Once, before calls in a row may have taken all that there are.
  @descriptors_ns 20_000_000

  defp descriptors(%{points: []} = run, spec, %{elapsed_ns: ns}) when ns < @descriptors_ns do
    Leak.descriptors(fn what ->
      case ask(run, :tame_audit_memory, :rounds, [spec, what]) do
        {:ok, {:ok, readings}} -> {:ok, readings}
        {:ok, failure} -> {:in_a_row, failure}
        error -> {:in_a_row, error}
      end
    end)
  end

  defp descriptors(_run, _spec, _first), do: {:ok, nil}

  # On the smallest size, where there are the most calls in a given time.
  defp leak(%{points: [%{descriptors: %{} = leak, bytes: bytes} | _]} = run),
    do: %{run | leak: Map.put(leak, :bytes, bytes)}

  defp leak(%{points: [%{elapsed_us: us, bytes: bytes} | _]} = run) do
    if failed?(run), do: run, else: leak(run, us, bytes)
  end

  defp leak(run), do: run

  defp leak(run, us, bytes) do
    spec = spec(run, bytes)

    case Leak.look(us, &rounds(run, spec, &1)) do
      {:ok, nil} -> run
      {:ok, leak} -> %{run | leak: Map.put(leak, :bytes, bytes)}
      failure -> later(run, failure, bytes, "whether it leaks", @in_a_row)
    end
  end

  # A round that takes too long is looked at for once more the limit: has it come further?
  defp rounds(run, spec, what) do
    timeout_ms = (what.rounds + 1) * run.options.limit_ms + @grace_ms

    with {:ok, answer} <-
           Peer.call(run.peer, :tame_audit_memory, :rounds, [spec, what], timeout_ms),
         do: answer
  end

  # The VM is of no more use.
  defp failed?(%{ended: ended}),
    do: Enum.any?(ended, &(Verdict.name(&1) in Verdict.names(:failure)))

  # What went well at all sizes, and not after them.
  defp later(run, failure, bytes, what, only) do
    case failure(failure, bytes, run) do
      {:end, verdict} -> run |> ended(verdict) |> note("it does so " <> only)
      {:error, why} -> ended(run, {:not_measured, what, why})
    end
  end

  # ---- killing its caller ---------------------------------------------------------------------------

  defp kill(%{points: []} = run), do: run
  defp kill(run), do: if(failed?(run), do: run, else: kill(run, List.last(run.points)))

  defp kill(run, point) do
    callers = if point.slice_kind == :dirty, do: callers(run), else: 1

    kill = fn how ->
      with {:ok, answer} <- ask(run, :kill, [spec(run, point.bytes), how]), do: answer
    end

    case Kill.look(point, callers, kill) do
      {:ok, killed} -> %{run | killed: killed}
      {:short, why} -> note(run, why)
      failure -> later(run, failure, point.bytes, "what becomes of a killed caller", @killed)
    end
  end

  # ---- the end --------------------------------------------------------------------------------------

  defp conclude(%{points: points, options: options} = run) do
    seen = %{killed: run.killed, leak: run.leak}
    verdicts = run.ended ++ judged(points, seen, options.budget_us, run.ended)

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

  # One that hangs, crashes or could not be measured wholly is not well-behaved where it did not.
  defp judged(points, seen, budget_us, ended) do
    for verdict <- Verdict.judge(points, seen, budget_us),
        ended == [] or Verdict.name(verdict) != :well_behaved,
        do: verdict
  end

  defp spec(run, bytes) do
    input =
      if match?({_, {:file, _}}, run.options.input), do: :file, else: elem(run.options.input, 1)

    %{target: run.mfa, input: input, bytes: bytes, limit_ms: run.options.limit_ms}
  end

  # The peer says itself when a call hangs; when native code has all its schedulers, we do.
  defp ask(run, module \\ :tame_audit, function, args) do
    parts = if function == :call, do: 2, else: 6
    Peer.call(run.peer, module, function, args, parts * run.options.limit_ms + @grace_ms)
  end

  defp note(run, text), do: %{run | notes: run.notes ++ [text]}

  defp one_line(text),
    do: text |> to_string() |> String.split("\n", trim: true) |> Enum.map_join(" ", &String.trim/1)

  defp now_ms, do: System.monotonic_time(:millisecond)
end
