defmodule Tame.Audit.Conform.Run do
  @moduledoc false
  # One library, called in three VMs (Tame.Audit.Conform.Sides): the calls by chance, the smallest inputs of what differs,
  # and the scenarios.

  alias Tame.Audit.Conform.{Cases, Compare, Scenarios, Sides, Smaller, Text}

  # A call that takes longer does not return; the VMs are started anew then.
  @limit_ms 4_000

  # A function that has ended VMs that often is called no more: each time costs three starts.
  @most_crashes 4

  # No function is called less often, however many there are, where the time suffices.
  @least_each 20

  # When that many times the wanted calls were made, the rest cannot be compared.
  @most_turns 5

  # How often, and for how long at most, a difference is looked at before it is told: what does the same nine times of ten
  # in each VM is found out by all but one in five hundred.
  @looks 32
  @looks_ms 2_000

  # A clock that counts seconds moves within that.
  @second_ms 1_100

  # To look at one of these again would take a start of all VMs each time.
  @ends [:crash, :hangs, :vm]

  # Cases that are kept for the scenarios.
  @kept 60

  @zero %{calls: 0, values: 0, equal: 0, contained: 0, varies: 0, unseen: 0, differs: 0}

  @type options :: %{
          calls: pos_integer(),
          seed: non_neg_integer(),
          total_ms: pos_integer(),
          samples: [{mfa(), [term()]}],
          progress: (map() -> any())
        }

  @doc "All of it. `functions` are those of one module, `words` what its files have."
  @spec library([mfa()], [atom() | String.t()], options()) :: {:ok, map()} | {:error, String.t()}
  def library([first | _] = functions, words, options) do
    :rand.seed(:exsss, options.seed)
    samples = for {function, _} = sample <- options.samples, function in functions, do: sample

    run = %{
      sides: Sides.new(first),
      cases: Cases.new(functions, samples, words),
      rows: Map.new(functions, &{&1, @zero}),
      differences: %{},
      crashes: %{},
      kept: [],
      notes: [],
      ended: nil,
      options: options,
      until: nil
    }

    case Sides.start(run.sides) do
      {:ok, sides} ->
        run = %{run | sides: sides, until: now_ms() + options.total_ms}
        {:ok, run |> calls(functions) |> scenarios() |> finish()}

      {:error, why} ->
        failed(run, why)
    end
  end

  defp failed(run, why) do
    Sides.stop(run.sides)
    {:error, why}
  end

  # ---- calls by chance -------------------------------------------------------------------------------

  defp calls(run, functions) do
    wanted = max(run.options.calls, @least_each * length(functions))
    round(run, functions, wanted)
  end

  # Each function in its turn.
  defp round(run, functions, wanted) do
    open = Enum.reject(functions, &(Map.get(run.crashes, &1, 0) >= @most_crashes))

    cond do
      done(run) >= wanted ->
        run

      open == [] ->
        note(run, "every function ended its VM #{@most_crashes} times: none is called any more")

      total(run, :calls) > @most_turns * wanted ->
        note(run, "#{done(run)} of #{total(run, :calls)} calls could be compared, the others vary")

      now_ms() > run.until ->
        note(
          run,
          "#{done(run)} of #{wanted} calls were made within #{Tame.Duration.text(1000 * run.options.total_ms)}"
        )

      true ->
        open |> Enum.reduce_while(run, &turn(&1, &2, wanted)) |> round(functions, wanted)
    end
  end

  defp turn(function, run, wanted) do
    run.options.progress.(%{what: Tame.FunctionName.text(function), done: done(run), total: wanted})

    if now_ms() > run.until,
      do: {:halt, run},
      else: {:cont, compared(run, Cases.draw(run.cases, function))}
  end

  # Calls that were compared.
  defp done(run), do: total(run, :equal) + total(run, :contained) + total(run, :differs)
  defp total(run, column), do: run.rows |> Map.values() |> Enum.map(& &1[column]) |> Enum.sum()

  defp compared(run, steps) do
    {answers, run} = ask(run, steps)
    {verdicts, run} = answers |> Compare.verdicts(length(steps)) |> by_chance(run, steps)
    outcomes = outcomes(answers)

    run
    |> count(steps, verdicts, outcomes)
    |> learn(steps, verdicts, outcomes)
    |> crashed(steps, verdicts)
    |> differences(steps, verdicts)
  end

  defp ask(run, steps) do
    answers = Sides.run(run.sides, :run, [steps, @limit_ms], 2 * @limit_ms)
    {answers, anew(run, answers)}
  end

  defp outcomes([{:ok, {:ok, outcomes}} | _]), do: outcomes
  defp outcomes(_), do: []

  defp count(run, steps, verdicts, outcomes) do
    rows =
      [steps, verdicts, outcomes ++ List.duplicate(%{refused: true}, length(steps))]
      |> Enum.zip()
      |> Enum.reduce(run.rows, fn {{function, _}, verdict, outcome}, rows ->
        Map.update!(rows, function, fn row ->
          column = if is_atom(verdict), do: verdict, else: :differs
          value = if verdict == :equal and not outcome.refused, do: 1, else: 0

          row
          |> Map.update!(:calls, &(&1 + 1))
          |> Map.update!(column, &(&1 + 1))
          |> Map.update!(:values, &(&1 + value))
        end)
      end)

    %{run | rows: rows}
  end

  defp learn(run, steps, verdicts, outcomes) do
    run = %{run | cases: Cases.learn(run.cases, steps, outcomes)}

    if Enum.all?(verdicts, &(&1 == :equal)) and length(outcomes) == length(steps),
      do: keep(run, {steps, outcomes}),
      else: run
  end

  # The newer take the place of any, and what was answered is kept rather than what was refused.
  defp keep(run, {_, outcomes} = one) do
    refused? = List.last(outcomes).refused

    cond do
      length(run.kept) < @kept -> %{run | kept: [one | run.kept]}
      refused? -> run
      true -> %{run | kept: List.replace_at(run.kept, :rand.uniform(@kept) - 1, one)}
    end
  end

  defp crashed(run, steps, verdicts) do
    for {{function, _}, verdict} <- Enum.zip(steps, verdicts),
        verdict == :contained or
          match?({:differs, kind, _, _} when kind in @ends, verdict),
        reduce: run do
      run -> %{run | crashes: Map.update(run.crashes, function, 1, &(&1 + 1))}
    end
  end

  # Libraries have states of their own: after one VM or host has lost it, all begin from the start.
  defp anew(run, answers) do
    if Enum.all?(answers, &whole?/1), do: run, else: restart(run)
  end

  defp whole?({:ok, {:ok, outcomes}}), do: not Enum.any?(outcomes, &lost?/1)
  defp whole?(_), do: false

  # A host goes on after these.
  defp lost?(%{did: {:error, {:tame, {reason, _}}, _}})
       when reason in [:returned_no_term, :reply_too_large, :too_large],
       do: false

  defp lost?(%{did: did}), do: match?({:error, {:tame, _}, _}, did)

  defp restart(run) do
    case Sides.start(run.sides) do
      {:ok, sides} -> %{run | sides: sides}
      {:error, why} -> %{run | until: 0, ended: "its VMs do not start again: #{why}"}
    end
  end

  # ---- what varies after all -------------------------------------------------------------------------

  # A coin falls alike in two VMs half of the time. A case has one difference at most: what comes after it is not seen.
  defp by_chance(verdicts, run, steps) do
    n = Enum.find_index(verdicts, &match?({:differs, kind, _, _} when kind not in @ends, &1))

    if n == nil or known?(run, Enum.at(steps, n), Enum.at(verdicts, n)) do
      {verdicts, run}
    else
      case looks(run, Enum.take(steps, n + 1), @looks, now_ms() + @looks_ms) do
        {true, run} -> {List.replace_at(verdicts, n, :varies), run}
        {false, run} -> {verdicts, run}
      end
    end
  end

  defp known?(run, {function, _}, {:differs, kind, _, _}),
    do: is_map_key(run.differences, {function, kind})

  defp looks(run, steps, left, until) do
    {verdict, run} = again(run, steps)
    more? = left > 1 and now_ms() < until

    case verdict do
      :varies -> {true, run}
      {:differs, kind, _, _} when kind in @ends -> {false, run}
      _ when more? -> looks(run, steps, left - 1, until)
      {:differs, _, _, _} -> {false, run}
      _ -> another_time(run, steps)
    end
  end

  # It does not differ any more. What a new VM does otherwise than one before it did depends on the time.
  defp another_time(run, steps) do
    began = now_ms()
    {[first | _], run} = run |> restart() |> ask(steps)
    Process.sleep(max(0, began + @second_ms - now_ms()))
    {[second | _], run} = run |> restart() |> ask(steps)
    {first != second, run}
  end

  # ---- differences -----------------------------------------------------------------------------------

  defp differences(run, steps, verdicts) do
    for {{function, _}, {:differs, kind, _, _} = verdict, n} <-
          Enum.zip([steps, verdicts, 1..length(steps)]),
        reduce: run do
      run -> difference(run, {function, kind}, Enum.take(steps, n), verdict)
    end
  end

  # The first of a kind is made smaller, further ones are counted.
  defp difference(%{differences: known} = run, key, _steps, _verdict) when is_map_key(known, key),
    do: %{run | differences: Map.update!(known, key, &%{&1 | times: &1.times + 1})}

  defp difference(run, {_, kind} = key, steps, first) when kind in @ends,
    do: known(run, key, steps, first, true)

  defp difference(run, {_, kind} = key, steps, first) do
    same? = fn steps, run ->
      {verdict, run} = again(run, steps)
      {match?({:differs, ^kind, _, _}, verdict), run}
    end

    # What is left of the time is for the other functions.
    smaller? = fn steps, run ->
      if now_ms() > run.until, do: {false, run}, else: same?.(steps, run)
    end

    # What was called before is forgotten first.
    case same?.(steps, restart(run)) do
      {true, run} ->
        {smaller, run} = Smaller.case(steps, run, smaller?)
        {verdict, run} = again(run, smaller)
        # It may do something else the last time.
        verdict = if match?({:differs, ^kind, _, _}, verdict), do: verdict, else: first
        known(run, key, smaller, verdict, true)

      {false, run} ->
        known(run, key, steps, first, false)
    end
  end

  defp known(run, key, steps, {:differs, _, in_vm, isolated}, repeats?) do
    found = %{
      input: Text.steps(steps),
      in_vm: in_vm,
      isolated: isolated,
      repeats: repeats?,
      times: 1
    }

    put_in(run.differences[key], found)
  end

  defp again(run, steps) do
    {answers, run} = ask(run, steps)
    {answers |> Compare.verdicts(length(steps)) |> List.last(), run}
  end

  # ---- the rest --------------------------------------------------------------------------------------

  defp scenarios(run) do
    run = restart(run)
    {module, _, _} = run.sides.function

    scenarios =
      if run.until == 0,
        do: [],
        else:
          Scenarios.run(run.sides, module, run.kept, Cases.makers(run.cases), run.options.progress)

    Map.put(run, :scenarios, scenarios)
  end

  defp finish(run) do
    Sides.stop(run.sides)

    %{
      functions:
        for(
          {function, row} <- Enum.sort(run.rows),
          do: Map.put(row, :function, Tame.FunctionName.text(function))
        ),
      differences:
        for {{function, kind}, found} <- Enum.sort(run.differences) do
          Map.merge(found, %{function: Tame.FunctionName.text(function), kind: kind})
        end,
      scenarios: run.scenarios,
      notes: Enum.reverse(run.notes),
      ended: run.ended
    }
  end

  defp note(run, text), do: %{run | notes: [text | run.notes]}
  defp now_ms, do: System.monotonic_time(:millisecond)
end
