defmodule Tame.JobModelStorm do
  @moduledoc """
  Calls of `Tame.JobModel` all at once, in a throw-away emulator, while callers die, cancel, drop streams and meet deadlines,
  and the library is replaced and unloaded. What is looked at is what must hold whatever came first.

  A call is `{job, placement, thing, work, delay_us, fate}`. Fates: `:none`, `{:kill, us}`, `{:cancel, us}`, `{:deadline, ms}`,
  and of streams `{:halt, parts}` and `{:drop, parts}`. An event is `{:upgrade | :purge | :delete, us}`; after a storm with events the
  library is unloaded.
  """

  alias Tame.{Await, JobModel, JobModelSequences}

  @quiet_ms 20_000

  @doc "A function of the module that is not a job, also while the module is unloaded."
  def surely(function, args \\ []) do
    apply(JobModel, function, args)
  rescue
    error in [UndefinedFunctionError, ErlangError] ->
      if error.__struct__ == ErlangError and error.original != :nif_not_loaded, do: raise(error)
      surely(function, args)
  end

  # What a caller may find whose module is replaced or gone: see also the test of upgrades.
  @upgraded [:undef, :nif_not_loaded]

  @doc "Runs a storm. `true`, or what was wrong."
  def run({calls, events}) do
    # In a process of its own: nothing is left of it when the library is to be unloaded.
    {pid, monitor} = spawn_monitor(fn -> exit({:storm, storm(calls, events)}) end)
    came = receive(do: ({:DOWN, ^monitor, :process, ^pid, came} -> came))

    with {:storm, true} <- came,
         true <- events == [] or unload(),
         do: true
  end

  defp storm(calls, events) do
    things = %{one: surely(:new_thing), two: surely(:new_thing), none: :none}
    before = surely(:totals)
    processes = Process.list()
    began = now_us()

    weather =
      spawn_monitor(fn -> Enum.each(Enum.sort_by(events, &elem(&1, 1)), &event(&1, began)) end)

    callers = for call <- calls, do: {call, start(call, things)}

    wrong =
      for {call, caller} <- callers,
          came = ended(caller),
          not right?(call, came, Keyword.keys(events)),
          do: {call, came}

    ended(weather)

    with [] <- wrong,
         true <- quiet(before),
         true <- things_free(things),
         true <- gates_free(calls),
         [] <- left_over(processes),
         do: true
  end

  @doc "Makes one call in a process of its own, which may be killed."
  def start(call, things) do
    {pid, _} = caller = spawn_monitor(fn -> exit({:came, call(call, things)}) end)
    with {:kill, us} <- elem(call, 5), do: spawn(fn -> late(us) && Process.exit(pid, :kill) end)
    caller
  end

  @doc "What the call of `start/2` came to: how, its ticket, and the messages that it left."
  def ended({pid, monitor}) do
    receive do
      {:DOWN, ^monitor, :process, ^pid, {:came, came}} -> came
      {:DOWN, ^monitor, :process, ^pid, reason} -> {{:died, reason}, 0, []}
    after
      60_000 -> {{:stuck, Process.info(pid, :current_stacktrace)}, 0, []}
    end
  end

  defp call({job, placement, thing, work, delay_us, fate}, things) do
    late(delay_us)
    ticket = :erlang.unique_integer([:positive])
    :ok = surely(:new_ticket, [rem(ticket, 65_536)])
    # One that fails does so as soon as it is released.
    :ok = surely(:release, [rem(ticket, 65_536)])
    bytes = :binary.copy(<<1>>, size(ticket))
    work = work(job, placement, work)
    call = fn -> JobModel.call(job, placement, ticket, Map.fetch!(things, thing), work, bytes) end

    came =
      outcome(fn -> {:value, follow(fate, if(job == :parts, do: list(call, fate), else: call))} end)

    {:messages, messages} = Process.info(self(), :messages)
    {came, ticket, messages}
  end

  # Of binaries in the heap, beside it, and now and then a large one.
  defp size(ticket) when rem(ticket, 50) == 0, do: 100_000
  defp size(ticket), do: rem(ticket, 200)

  defp work(:parts, _, work) when is_integer(work), do: rem(work, 8)
  defp work(:parts, _, _), do: 3
  # Its scheduler is nobody else's meanwhile.
  defp work(_, :inline, work) when is_integer(work), do: rem(work, 300)
  defp work(_, _, work), do: work

  defp list(call, {:halt, parts}), do: fn -> call.() |> Enum.take(parts) end

  # Nobody has the stream any more when this returns.
  defp list(call, {:drop, parts}) do
    fn ->
      taken =
        case Enumerable.reduce(call.(), {:cont, []}, &part(&1, &2, parts)) do
          {:suspended, taken, _} -> taken
          {_, taken} -> taken
        end

      :erlang.garbage_collect()
      Enum.reverse(taken)
    end
  end

  defp list(call, _), do: fn -> call.() |> Enum.to_list() end

  defp part(part, taken, parts) do
    taken = [part | taken]
    {if(length(taken) == parts, do: :suspend, else: :cont), taken}
  end

  defp follow({:deadline, ms}, call), do: Tame.deadline(ms, call)

  defp follow({:cancel, us}, call) do
    {:ok, ref} = :tame.async(call, [])
    late(us)

    receive do
      {^ref, {:ok, value}} -> value
      {^ref, {:error, reason}} -> :erlang.error(reason)
    after
      0 ->
        :ok = :tame.cancel(ref)
        :cancelled
    end
  end

  defp follow(_, call), do: call.()

  defp outcome(fun) do
    fun.()
  catch
    :error, reason -> {:error, reason}
    :exit, reason -> {:error, {:exit, reason}}
  end

  @doc "Whether what a call came to is what it may come to, beside these events."
  def right?({job, placement, _, work, _, fate}, {came, ticket, messages}, events) do
    upgraded? = events != []

    messages == [] and
      case {came, fate} do
        {{:value, :cancelled}, {:cancel, _}} -> true
        {{:value, value}, _} -> value == value(job, work(job, placement, work), ticket, fate)
        {{:error, {:tame, :busy}}, _} -> true
        {{:error, {:tame, :deadline}}, {:deadline, _}} -> true
        {{:error, {:failed, n}}, _} -> work == :fail and n == rem(ticket, 65_536)
        {{:error, :badarg}, _} -> work == :refuse
        {{:died, :killed}, {:kill, _}} -> true
        {{:died, :killed}, _} -> upgraded?
        {{:error, {:exit, :killed}}, {:cancel, _}} -> upgraded?
        {{:error, {:badfun, _}}, _} -> upgraded?
        {{:error, reason}, _} -> upgraded? and reason in @upgraded
        _ -> false
      end
  end

  # A step fails when it is asked for, and init refuses: these have no value.
  defp value(_, work, _, _) when work in [:fail, :refuse], do: :none

  defp value(:parts, parts, ticket, fate) do
    wanted = with {how, wanted} when how in [:halt, :drop] <- fate, do: wanted, else: (_ -> parts)
    for n <- 1..min(parts, wanted)//1, do: {rem(ticket, 65_536), n, size(ticket)}
  end

  defp value(_, _, ticket, _), do: {rem(ticket, 65_536), size(ticket)}

  # ---- the library is replaced -----------------------------------------------------------------------

  defp event({what, us}, began) do
    late(began + us - now_us())
    event(what)
  end

  # Not while a call loads the module, which runs its on_load: code_server of OTP 25 forgets then, now and then, that the
  # module is gone, and nobody can call it any more.
  def event(event) do
    {:module, _} = :code.ensure_loaded(JobModel)
    :code.purge(JobModel)
    if event == :upgrade, do: :code.load_file(JobModel)
    if event == :delete, do: :code.delete(JobModel)
    :ok
  end

  # Where nobody calls. Each instance that was loaded is unloaded, once.
  defp unload do
    :ok = event(:delete)
    :code.purge(JobModel)
    unloaded()
  end

  defp unloaded do
    _ = Await.until(fn -> match?({same, same}, instances()) end, @quiet_ms)
    match?({same, same}, instances()) || {:instances, instances()}
  end

  # Loaded and unloaded since the board was made; read here, because to call the module loads it.
  defp instances do
    JobModelSequences.collect()
    {:ok, file} = :file.open(System.get_env("TAME_MODEL_BOARD"), [:read, :raw, :binary])
    {:ok, <<loads::native-64, unloads::native-64>>} = :file.pread(file, 32, 16)
    :ok = :file.close(file)
    {loads, unloads}
  end

  @doc """
  Kills a caller whose call runs on a dirty scheduler, unloads the code, and lets the call go on, which then makes a resource of
  the library's. `true` when the library is unloaded after that.
  """
  def purged_under_a_dirty_call(call) do
    ticket = 1
    :ok = surely(:new_ticket, [ticket])
    {pid, monitor} = spawn_monitor(fn -> dirty(call, ticket) end)
    true = Await.until(fn -> match?({1, _, _}, surely(:seen, [ticket])) end)
    Process.exit(pid, :kill)
    receive do: ({:DOWN, ^monitor, :process, ^pid, :killed} -> :ok)
    :ok = event(:delete)
    :code.purge(JobModel)
    false = :erlang.module_loaded(JobModel)
    released(ticket)
    unloaded()
  end

  defp dirty(:late_thing, ticket), do: JobModel.late_thing(ticket)

  defp dirty({:parts, placement}, ticket) do
    :parts |> JobModel.call(placement, ticket, :none, :held, "") |> Enum.take(1)
  end

  # On the board, because to call the module loads it.
  defp released(ticket) do
    {:ok, file} = :file.open(System.get_env("TAME_MODEL_BOARD"), [:read, :write, :raw, :binary])
    :ok = :file.pwrite(file, 48 + 16 * ticket + 12, <<1::native-32>>)
    :ok = :file.close(file)
  end

  # ---- when all is over -------------------------------------------------------------------------------

  # Against what was before, so that what one storm leaves behind is not held against the next.
  defp quiet({inits0, cleanups0, over0, shared0}) do
    counts = fn ->
      JobModelSequences.collect()
      {inits, cleanups, over, shared} = surely(:totals)
      {inits - cleanups - (inits0 - cleanups0), over - over0, shared - shared0}
    end

    quiet? = fn -> match?({late, 0, 0} when late <= 0, counts.()) end
    Await.until(quiet?, @quiet_ms) || counts.()
  end

  # Workers that were told to end may take a moment.
  defp left_over(before) do
    left = fn -> Process.list() -- before end
    _ = Await.until(fn -> left.() == [] end, @quiet_ms)

    for pid <- left.(),
        info = Process.info(pid, [:initial_call, :current_stacktrace, :messages]),
        do: info
  end

  defp things_free(things) do
    Enum.all?([:one, :two], fn thing ->
      case call({:free, :yielding, thing, 1, 0, {:deadline, @quiet_ms}}, things) do
        {{:value, _}, _, []} -> true
        _ -> false
      end
    end) || :thing_is_not_free
  end

  # All that may run at a gate does.
  defp gates_free(calls) do
    placements =
      for {_, placement, _, _, _, _} <- calls, placement != :inline, uniq: true, do: placement

    Enum.find_value(placements, true, fn placement ->
      case JobModelSequences.run({{placement, placement}, []}) do
        true -> nil
        wrong -> {placement, wrong}
      end
    end)
  end

  defp late(us) when us > 2000, do: Process.sleep(div(us, 1000))
  defp late(us), do: late_until(now_us() + us)
  defp late_until(at_us), do: now_us() >= at_us or late_until(at_us)
  defp now_us, do: System.monotonic_time(:microsecond)
end
