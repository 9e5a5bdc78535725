defmodule Tame.JobLibraryScenarios do
  @moduledoc "What a test does with `Tame.JobLibrary` inside a throw-away emulator."

  alias Tame.{Await, JobLibrary}

  @in_queue for arity <- 1..4, do: {:current_function, {:tame_job_call, :hand_over, arity}}

  @doc "What a call raises: `{:badarg, number, sentence}`, or its reason."
  def raised(function, args) do
    {:value, apply(JobLibrary, function, args)}
  catch
    :error, :badarg ->
      [{JobLibrary, ^function, ^args, info} | _] = __STACKTRACE__

      case info do
        [error_info: %{cause: cause}] -> cause |> Enum.at(0) |> Tuple.insert_at(0, :badarg)
        _ -> :badarg
      end

    :error, reason ->
      reason
  end

  def sum_beside_garbage do
    numbers = Enum.to_list(1..200_000)
    expected = Enum.sum(numbers)

    sums =
      for _ <- 1..5 do
        # A list on the heap that is moved by the collections that garbage brings.
        mine = Enum.map(numbers, & &1)
        caller = self()
        noise = spawn(fn -> noise(caller) end)
        {sum, _} = JobLibrary.sum_yielding(mine)
        Process.exit(noise, :kill)
        sum
      end

    if Enum.all?(sums, &(&1 == expected)), do: :same, else: :different
  end

  defp noise(pid) do
    :erlang.garbage_collect(pid)
    Process.sleep(1)
    noise(pid)
  end

  def parts(placement, from, to),
    do: JobLibrary.call(:parts, placement, [from, to]) |> Enum.to_list()

  @doc "The first of 100 parts, and how many of such jobs have been cleaned up then."
  def first_parts(placement, count) do
    before = JobLibrary.cleaned()
    parts = JobLibrary.call(:parts, placement, [1, 100]) |> Enum.take(count)
    {parts, JobLibrary.cleaned() - before}
  end

  def dropped_stream do
    before = JobLibrary.cleaned()
    {pid, monitor} = spawn_monitor(fn -> [{1} | _] = sequence().() end)
    receive(do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok))
    Await.until(fn -> JobLibrary.cleaned() > before end)
    JobLibrary.cleaned() - before
  end

  def foreign_stream do
    [{1} | next] = sequence().()
    {pid, monitor} = spawn_monitor(fn -> exit(catch_error(next)) end)
    receive(do: ({:DOWN, ^monitor, :process, ^pid, reason} -> reason))
  end

  def forked_stream do
    [one | next] = sequence().()
    [two | _] = next.()
    {one, two, catch_error(next)}
  end

  defp sequence do
    :tame.stream(:parts_auto_nif, {JobLibrary, :parts_auto, [1, 10]})
  end

  @doc "The end of a stream of 100 ms or 5 s that was begun within a deadline of 50 ms, within none, or with one of its own."
  def deadlines_of_streams(placement) do
    [inside, outside, own] =
      for {us, own} <- [{100_000, :infinity}, {5_000_000, :infinity}, {5_000_000, 50}],
          do: late(placement, us, own)

    [:begun | end_outside] = :tame.with(%{deadline_ms: 50}, inside)
    [:begun | end_inside] = outside.()
    [:begun | end_own] = own.()

    for rest <- [end_outside, fn -> :tame.with(%{deadline_ms: 50}, end_inside) end, end_own],
        do: catch_error(rest)
  end

  @doc "The end of a stream whose step says that it has emitted a part."
  def partless(placement), do: catch_error(late(placement, 0, :infinity))

  defp late(placement, us, own) do
    call = {JobLibrary, :"late_#{placement}", [us]}
    nif = :"late_#{placement}_nif"
    :tame.stream(if(own == :infinity, do: nif, else: {nif, own}), call)
  end

  def empty_stream, do: JobLibrary.count_as_stream(10, 0, :ok) |> Enum.to_list()

  @doc "That many processes bump one counter: what each saw before, and what it shows at the end."
  def bumps(placement, count, times) do
    counter = JobLibrary.new_counter()

    befores =
      for _ <- 1..count do
        spawn_monitor(fn -> exit({:before, JobLibrary.call(:bump, placement, [counter, times])}) end)
      end
      |> Enum.map(fn {pid, monitor} ->
        receive(do: ({:DOWN, ^monitor, :process, ^pid, {:before, before}} -> before))
      end)

    {befores, JobLibrary.read_counter(counter)}
  end

  @doc "A call on one context is made while a call on another goes on that does not end before it."
  def two_contexts do
    [one, two] = for _ <- 1..2, do: JobLibrary.new_counter()
    {pid, _} = spawn_monitor(fn -> JobLibrary.bump_yielding(one, 60_000_000) end)
    true = Await.until(fn -> JobLibrary.read_counter(one) > 0 end)
    0 = JobLibrary.bump_yielding(two, 10)
    alive = Process.alive?(pid)
    Process.exit(pid, :kill)
    if alive, do: :both_at_once, else: :one_after_the_other
  end

  @doc "Callers of one context in every placement are killed at any moment; then it is free."
  def bump_storm do
    counter = JobLibrary.new_counter()

    for _ <- 1..40 do
      callers =
        for placement <- Tame.JobProbe.placements() do
          spawn_monitor(fn -> JobLibrary.call(:bump, placement, [counter, 100]) end)
        end

      spin_until(System.monotonic_time(:microsecond) + :rand.uniform(1500))
      for {pid, _} <- callers, do: Process.exit(pid, :kill)
      for {pid, monitor} <- callers, do: receive(do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok))
    end

    {pid, monitor} = spawn_monitor(fn -> JobLibrary.bump_yielding(counter, 1) end)

    receive do
      {:DOWN, ^monitor, :process, ^pid, _} -> :free
    after
      10_000 -> :held
    end
  end

  @doc "Who waits for a context gets it when its holder is killed in a step: what it saw, or `:waits`."
  def bump_after_death(placement) do
    counter = JobLibrary.new_counter()
    {holder, _} = spawn_monitor(fn -> JobLibrary.call(:bump, placement, [counter, 600_000_000]) end)
    true = Await.until(fn -> JobLibrary.read_counter(counter) > 0 end)
    {waiter, monitor} = spawn_monitor(fn -> exit({:saw, JobLibrary.bump_yielding(counter, 1)}) end)
    in_queue = fn -> Process.info(waiter, :current_function) in @in_queue end
    true = Await.until(in_queue)
    Process.exit(holder, :kill)

    receive do
      {:DOWN, ^monitor, :process, ^waiter, {:saw, count}} when count > 0 -> :saw
    after
      10_000 -> :waits
    end
  end

  @doc "How many of three contexts are destroyed when their process ends, and what the load hook was given."
  def destroyed do
    {pid, monitor} =
      spawn_monitor(fn ->
        counters = for _ <- 1..3, do: JobLibrary.new_counter()
        for counter <- counters, do: JobLibrary.bump_pool(counter, 3)
      end)

    receive(do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok))
    Await.until(fn -> elem(JobLibrary.state(), 0) == 3 end)
    JobLibrary.state()
  end

  @doc """
  A context that another keeps when its own term is gone, and how many are destroyed: while it is kept, when a NIF
  refused what is none, and at the end.
  """
  def kept do
    parent = self()

    {pid, monitor} =
      spawn_monitor(fn ->
        keeper = keeper()
        :erlang.garbage_collect()
        send(parent, {:kept, JobLibrary.read_kept(keeper), elem(JobLibrary.state(), 0)})
        receive(do: (:end -> JobLibrary.read_kept(keeper)))
      end)

    kept = receive(do: ({:kept, value, destroyed} -> {value, destroyed}))
    :badarg = refused(fn -> JobLibrary.keep_counter(:none) end)
    Await.until(fn -> elem(JobLibrary.state(), 0) == 1 end)
    one = elem(JobLibrary.state(), 0)
    send(pid, :end)
    receive(do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok))
    Await.until(fn -> elem(JobLibrary.state(), 0) == 3 end)
    {kept, one, elem(JobLibrary.state(), 0)}
  end

  # The kept one's own term is garbage when this returns.
  defp keeper do
    counter = JobLibrary.new_counter()
    0 = JobLibrary.bump_pool(counter, 3)
    JobLibrary.keep_counter(counter)
  end

  defp refused(fun) do
    fun.()
  rescue
    _ in ArgumentError -> :badarg
  end

  @doc "Loads the module anew beside a living context: what that says, what the context shows, and whether it works."
  def upgrade do
    counter = JobLibrary.new_counter()
    0 = JobLibrary.bump_auto(counter, 5)
    loaded = :code.load_file(JobLibrary)
    shown = JobLibrary.read_counter(counter)
    5 = JobLibrary.bump_pool(counter, 1)
    {loaded, shown, :ok}
  end

  @doc """
  A context that its library keeps lives through an upgrade to a build of the same; then through one to a build that
  keeps none.
  """
  def upgrade_twice(keepless) do
    counter = JobLibrary.new_counter()
    0 = JobLibrary.bump_auto(counter, 5)
    {:module, _} = :code.load_file(JobLibrary)
    true = :code.soft_purge(JobLibrary)
    true = :os.putenv(~c"TAME_JOB_LIBRARY", keepless)
    refused = :code.load_file(JobLibrary)
    5 = JobLibrary.bump_pool(counter, 1)
    {refused, JobLibrary.read_counter(counter)}
  end

  @doc "A call of that many us, which has 20 ms."
  def in_20_ms(us) do
    JobLibrary.count_in_time(us, 0, :ok)
  catch
    :error, reason -> reason
  end

  @doc "A call of a second, under a deadline of that many ms."
  def in_time(function, deadline_ms) do
    Tame.deadline(deadline_ms, fn -> apply(JobLibrary, function, [60_000_000, 0, :unknown]) end)
  catch
    :error, reason -> reason
  end

  @doc "What loading says in a module that has all NIFs but '$tame'/3."
  def forgetful(library) do
    functions =
      for {name, arity} <- JobLibrary.__nifs__(), name != :"$tame" do
        args = List.duplicate("_", arity) |> Enum.join(",")
        "'#{name}'(#{args}) -> erlang:nif_error(not_loaded).\n"
      end

    nifs = for {name, arity} <- JobLibrary.__nifs__(), name != :"$tame", do: "'#{name}'/#{arity}"

    forms =
      "-module('Elixir.Tame.JobLibrary').\n-export([load/1]).\n-nifs([#{Enum.join(nifs, ",")}]).\n" <>
        "load(Path) -> erlang:load_nif(Path, 7).\n" <> Enum.join(functions)

    :code.delete(JobLibrary)
    :code.purge(JobLibrary)
    {:module, JobLibrary} = load_text(forms)
    apply(JobLibrary, :load, [to_charlist(Path.rootname(library))])
  end

  defp load_text(text) do
    {:ok, tokens, _} = :erl_scan.string(to_charlist(text))

    forms =
      tokens
      |> Enum.chunk_while(
        [],
        fn
          {:dot, _} = dot, form -> {:cont, Enum.reverse([dot | form]), []}
          token, form -> {:cont, [token | form]}
        end,
        fn [] -> {:cont, []} end
      )
      |> Enum.map(fn form ->
        {:ok, parsed} = :erl_parse.parse_form(form)
        parsed
      end)

    {:ok, module, beam} = :compile.forms(forms)
    :code.load_binary(module, ~c"forgetful", beam)
  end

  defp catch_error(fun) do
    fun.()
  catch
    :error, reason -> reason
  end

  defp spin_until(at_us) do
    if System.monotonic_time(:microsecond) < at_us, do: spin_until(at_us)
  end
end
