defmodule Tame.Audit.Conform.Scenarios do
  @moduledoc """
  What every isolated library has to stand: sixteen callers at once, owners that are killed while they call or hold what
  the library gave them, and a host that is killed.

  Only cases whose answers do not depend on what was called before are used: they are made twice in each VM first. Of slow
  ones as many as there is time for.
  """

  alias Tame.Audit.Conform.{Compare, Sides, Text}

  @type row :: %{scenario: String.t(), status: :ok | :differs | :not_run, what: String.t()}

  @callers 16
  @rounds 3
  @holders 100
  @killed 200
  @most_us 3_000
  @rounds_of_owners 3
  @case_ms 4_000
  @all_ms 60_000
  @settle_ms 10_000

  # What all cases may take together when they are made one after the other: sixteen callers of a host with two workers take
  # twenty-four times that, which all_ms has room for on a machine that others use too. And no call of a caller that is
  # killed goes on for longer than a host's grace_ms then.
  @cases_us 800_000

  # What takes longer than that is still at it when its host is killed, without being made more often.
  @long_us 100_000

  # What a host may keep from one round of dead owners to the next: its allocator does not return every page.
  @kept_bytes 32 * 1024 * 1024

  @doc "The scenarios. `kept` are cases with their outcomes, `makers` cases that make a resource."
  @spec run(Sides.t(), module(), [{list(), list()}], [list()], (map() -> any())) :: [row()]
  def run(sides, module, kept, makers, progress) do
    steady = steady(sides, kept)
    {cases, us} = in_time(steady, asking(sides))

    if cases == [] do
      for name <- ~w(callers owners host_killed), do: row(name, :not_run, none(kept, steady))
    else
      progress.(%{what: "16 callers", done: 0, total: 3})
      {callers, quick} = callers("callers", sides, cases)
      progress.(%{what: "owners that die", done: 1, total: 3})
      owners = owners("owners", sides, module, quick, makers)
      progress.(%{what: "host killed", done: 2, total: 3})
      rounds = if us > @long_us, do: @rounds, else: 5 * @rounds
      killed = host_killed("host_killed", sides, module, quick, rounds)
      [slow(callers, length(steady) - length(cases)), owners, killed]
    end
  end

  defp none([], _steady), do: "no call answered"

  defp none(kept, []),
    do: "#{length(kept)} cases, and none of them answers the same when it is made again"

  defp none(_kept, steady),
    do: "#{length(steady)} cases, and each takes longer than #{div(@cases_us, 1000)} ms"

  defp slow(row, 0), do: row
  defp slow(row, n), do: %{row | what: row.what <> "; #{n} cases are left out, which take long"}

  defp row(name, status, what), do: %{scenario: name, status: status, what: what}

  # Those that do the same when they are made again, in every VM, with what they took the faster time.
  defp steady(sides, kept) do
    twice =
      for _ <- 1..2,
          do: for({steps, expected} <- kept, do: timed(sides, steps, expected))

    for {case, {us, true}, {us_again, true}} <- Enum.zip([kept | twice]),
        do: {case, min(us, us_again)}
  end

  defp timed(sides, steps, expected),
    do: :timer.tc(fn -> same_everywhere?(sides, steps, expected) end)

  # What it takes to ask the VMs for nothing.
  defp asking(sides),
    do: 1..10 |> Enum.map(fn _ -> sides |> timed([], []) |> elem(0) end) |> Enum.min()

  # As many as there is time for, with what they take.
  defp in_time(steady, asking_us) do
    {cases, us} =
      Enum.reduce(steady, {[], 0}, fn {case, us}, {cases, sum} ->
        sum_with = sum + max(0, us - asking_us)
        if sum_with > @cases_us, do: {cases, sum}, else: {[case | cases], sum_with}
      end)

    {Enum.reverse(cases), us}
  end

  defp same_everywhere?(sides, steps, expected) do
    answers = Sides.run(sides, :run, [steps, @case_ms], 2 * @case_ms)
    Enum.all?(answers, &(&1 == {:ok, {:ok, expected}}))
  end

  # ---- many callers ----------------------------------------------------------------------------------

  # And those whose answers do not depend on who calls at the same time: the others are of no more use.
  defp callers(name, sides, cases) do
    steps = Enum.map(cases, &elem(&1, 0))
    args = [steps, @callers, @rounds, @all_ms]

    case Sides.run(sides, :callers, args, 2 * @all_ms) do
      [{:ok, {:ok, vm}}, {:ok, {:ok, again}}, {:ok, {:ok, isolated}}] ->
        compared(name, cases, Enum.zip([vm, again, isolated]))

      [vm, again, isolated] ->
        {ended(name, vm, again, isolated), cases}
    end
  end

  defp compared(name, cases, seen) do
    steady =
      for {{steps, expected}, {[expected], [expected], isolated}} <- Enum.zip(cases, seen),
          do: {steps, expected, isolated}

    others =
      for {steps, expected, isolated} <- steady,
          other <- isolated -- [expected],
          do: {steps, expected, other}

    row =
      case others do
        [] when steady == [] ->
          row(name, :not_run, "no case answers the same to several callers in the VM either")

        [] ->
          count = @callers * @rounds * length(steady)

          row(
            name,
            :ok,
            "#{count} cases by #{@callers} callers, answers as for one" <> left(cases, steady)
          )

        [{steps, expected, other} | _] ->
          shown = difference(steps, expected, other)
          row(name, :differs, "#{length(others)} answers are not those of one caller: #{shown}")
      end

    {row, for({steps, expected, _} <- steady, do: {steps, expected})}
  end

  defp left(cases, steady) when length(cases) == length(steady), do: ""

  defp left(cases, steady),
    do: "; #{length(cases) - length(steady)} cases do not answer the same in the VM either"

  # Outcomes of all steps: the first that is another.
  defp difference(steps, expected, other) do
    {{_, was, is}, n} =
      [steps, expected, other]
      |> Enum.zip()
      |> Enum.with_index(1)
      |> Enum.find(fn {{_, was, is}, _} -> was != is end)

    "#{Text.steps(Enum.take(steps, n))}: #{Compare.text(was)}, here #{Compare.text(is)}"
  end

  defp ended(name, vm, again, isolated) do
    case {why(vm) || why(again), why(isolated)} do
      {nil, why} ->
        row(name, :differs, "isolated: #{why}")

      {vm_why, nil} ->
        row(name, :ok, "#{@callers} callers: in the VM #{vm_why}, isolated it goes on")

      {vm_why, why} ->
        row(name, :not_run, "in the VM #{vm_why}, isolated #{why}")
    end
  end

  defp why({:ok, {:ok, _}}), do: nil
  defp why({:ok, {:error, :hangs}}), do: "not all callers returned within #{div(@all_ms, 1000)} s"
  defp why({:error, why}), do: why

  # ---- owners that die -------------------------------------------------------------------------------

  defp owners(name, sides, module, cases, makers) do
    steps = Enum.map(cases, &elem(&1, 0))
    holding = if makers == [], do: steps, else: makers

    with true <- cases != [] || {:none, "no case answers the same to several callers"},
         {:ok, %{resources: before, processes: processes}} <- settled(sides, module, 0),
         {:ok, after_each} <- rounds(sides, module, steps, holding, before),
         {:ok, %{resources: left} = at_end} <- settled(sides, module, before),
         :ok <- as_before(sides, cases) do
      [first | _] = after_each
      last = List.last(after_each)
      grown = last - first
      stay = left - before
      started = at_end.processes - processes

      killed =
        "#{@rounds_of_owners * @holders} holders and #{@rounds_of_owners * @killed * 4} callers killed"

      memory = "its host has #{mib(first)} MiB after the first round, #{mib(last)} after the last"
      what = "#{killed}; resources #{before} before, #{left} after; #{memory}"

      cond do
        # They may hold them: a timer for each call, say.
        stay > 0 and started > 0 ->
          row(name, :not_run, "#{what}, and #{started} processes that calls have started")

        stay > 0 ->
          row(name, :differs, what <> ": resources of dead owners stay")

        grown > @kept_bytes ->
          row(name, :differs, what <> ": memory of dead owners stays")

        true ->
          row(name, :ok, what)
      end
    else
      {:none, why} -> row(name, :not_run, why)
      {:error, why} -> row(name, :differs, why)
    end
  end

  # ---- a host that is killed -------------------------------------------------------------------------

  defp host_killed(name, sides, module, cases, rounds) do
    steps = Enum.map(cases, &elem(&1, 0))

    with true <- cases != [] || {:none, "no case answers the same to several callers"},
         {:ok, %{os_pid: os_pid}} <- host(sides, module) do
      # It is killed while sixteen callers are at it.
      calling =
        Task.async(fn ->
          Sides.isolated(sides, :callers, [steps, @callers, rounds, @all_ms], 2 * @all_ms)
        end)

      Process.sleep(50)
      {_, _} = System.cmd("kill", ["-KILL", "#{os_pid}"], stderr_to_stdout: true)

      with {:ok, {:ok, seen}} <- Task.await(calling, :infinity),
           :ok <- allowed(cases, seen),
           :ok <- another(sides, module, os_pid),
           :ok <- as_before(sides, cases) do
        row(
          name,
          :ok,
          "under #{@callers} callers: each got its answer, the host's end, or badarg for what it held; then #{length(cases)} cases as before"
        )
      else
        {:ok, {:error, :hangs}} -> row(name, :differs, why({:ok, {:error, :hangs}}))
        {:error, why} -> row(name, :differs, why)
      end
    else
      {:none, why} -> row(name, :not_run, why)
      {:error, why} -> row(name, :differs, why)
    end
  end

  # The callers may have been done before the host was killed, and the VM has not seen its end yet, or no other is up.
  defp another(sides, module, os_pid, until \\ System.monotonic_time(:millisecond) + @settle_ms) do
    case host(sides, module) do
      {:ok, %{os_pid: next}} when next != os_pid ->
        :ok

      seen ->
        if System.monotonic_time(:millisecond) > until do
          with {:ok, _} <- seen, do: {:error, "no other host took its place"}
        else
          Process.sleep(20)
          another(sides, module, os_pid, until)
        end
    end
  end

  defp allowed(cases, seen) do
    wrong =
      for {{steps, expected}, outcomes} <- Enum.zip(cases, seen),
          outcome <- outcomes,
          not (outcome == expected or excused?(outcome, expected)),
          do: {steps, expected, outcome}

    case wrong do
      [] ->
        :ok

      [{steps, expected, other} | _] ->
        {:error, "while its host is killed: #{difference(steps, expected, other)}"}
    end
  end

  # Up to the end of the host all as before; from then on what a case holds is not known.
  defp excused?(outcome, expected) do
    [outcome, expected]
    |> Enum.zip()
    |> Enum.drop_while(fn {is, was} -> is == was end)
    |> case do
      [{%{did: {:error, {:tame, _}, _}}, _} | _] -> true
      [{%{did: {:error, :badarg, _}}, _} | _] = rest -> length(rest) < length(expected)
      _ -> false
    end
  end

  # ---- what they share -------------------------------------------------------------------------------

  defp host(sides, module) do
    case Sides.isolated(sides, :host, [module], @settle_ms) do
      {:ok, {:ok, info}} -> {:ok, info}
      {:ok, :none} -> {:error, "no host is up"}
      {:error, why} -> {:error, "the VM that asks hosts #{why}"}
    end
  end

  defp rounds(sides, module, steps, holding, before) do
    Enum.reduce_while(1..@rounds_of_owners, {:ok, []}, fn _, {:ok, seen} ->
      with {:ok, :ok} <- Sides.isolated(sides, :holders, [holding, @holders], @all_ms),
           {:ok, :ok} <- Sides.isolated(sides, :dies, [steps, @killed, @most_us], @all_ms),
           {:ok, %{rss_bytes: bytes}} <- settled(sides, module, before) do
        {:cont, {:ok, seen ++ [bytes]}}
      else
        {:error, why} -> {:halt, {:error, "owners that die: #{why}"}}
      end
    end)
  end

  # What dead owners held is let go when the VM collects it, which nothing hurries.
  defp settled(sides, module, least, until \\ System.monotonic_time(:millisecond) + @settle_ms) do
    with {:ok, %{resources: count}} = seen <- host(sides, module) do
      if count <= least or System.monotonic_time(:millisecond) > until do
        seen
      else
        Process.sleep(50)
        settled(sides, module, least, until)
      end
    end
  end

  defp as_before(sides, cases) do
    Enum.find_value(cases, :ok, fn {steps, expected} ->
      case Sides.isolated(sides, :run, [steps, @case_ms], 2 * @case_ms) do
        {:ok, {:ok, ^expected}} -> nil
        {:ok, {:ok, other}} -> {:error, "afterwards: #{difference(steps, expected, other)}"}
        other -> {:error, "afterwards: #{why(other)}"}
      end
    end)
  end

  defp mib(bytes), do: div(bytes, 1024 * 1024)
end
