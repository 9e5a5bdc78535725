defmodule Tame.JobFetchScenarios do
  @moduledoc """
  Calls whose steps are done and whose result has not been fetched, inside a throw-away emulator. The job is
  `Tame.JobProbe`; `path` is the file of its counters.
  """

  import Tame.JobCallers

  alias Tame.JobProbe

  @endless_us endless_us()

  @doc """
  A caller that has all steps done and has not asked for the result: what another process gets that asks in
  its place, and what is cleaned up after its death, although others hold what it would have asked with.
  """
  def die_before_fetch(path) do
    {caller, run} = done(:pool_nif)
    stolen = catch_error(fn -> go_on(run) end)
    before = JobProbe.counters(path)
    stop(caller)
    wait_until(fn -> ended?(path) end)
    {stolen, before, JobProbe.counters(path), tuple_size(run)}
  end

  @doc "Places of `gated_pool` (2) after their callers died with all steps done: how many calls then get one."
  def gate_before_fetch(path) do
    held = for _ <- 1..2, do: done(:gated_pool_nif)
    for {caller, _} <- held, do: stop(caller)
    {admitted(:gated_pool, path), length(held)}
  end

  @doc "A result is fetched once: with wrong arguments, rightly, and a second time."
  def fetch_twice(path) do
    {{pid, _} = caller, run} = done(:pool_nif)

    answers =
      for args <- [[300], [300, "long enough s"], [300, "long enough s"]], do: ask(pid, run, args)

    stop(caller)
    {answers, JobProbe.counters(path)}
  end

  @doc """
  Loads the module anew, purging the old, while one call has all steps done and one has its turn at the gate;
  then both go on. Returns what they get.
  """
  def upgrade_before_fetch(path) do
    {{done, _} = first, done_run} = done(:pool_nif)
    running = for _ <- 1..2, do: start(:gated_nif, @endless_us)
    wait_until(fn -> JobProbe.counters(path).init == 3 end)
    {{turn, _} = second, turn_run} = waiting(:gated_nif)
    Enum.each(running, &stop/1)
    :ok = ask(turn, :wait_for_message, [])
    {:module, JobProbe} = :code.load_file(JobProbe)
    :code.purge(JobProbe)

    answers =
      for {pid, run} <- [{done, done_run}, {turn, turn_run}],
          do: ask(pid, run, [300, "long enough s"])

    Enum.each([first, second], &stop/1)
    wait_until(fn -> ended?(path) end)
    {answers, JobProbe.counters(path)}
  end

  # A process that has made a bare call of the NIF, whose steps are done, and waits to be asked for the rest.
  defp done(nif) do
    {{pid, _} = caller, run} = waiting(nif)
    :ok = ask(pid, :wait_for_message, [])
    {caller, run}
  end

  defp waiting(nif) do
    me = self()

    caller =
      spawn_monitor(fn ->
        {:"$tame", :run, run} = apply(JobProbe, nif, [300, "long enough s"])
        ref = make_ref()
        send(me, {self(), hand_over(run, ref)})
        answer_asked(ref)
      end)

    {pid, _} = caller
    receive(do: ({^pid, run} -> {caller, run}))
  end

  defp hand_over(run, ref) do
    case JobProbe."$tame"(run, ref, [300, "long enough s"]) do
      {:"$tame", :wait, waiting} ->
        waiting

      {:"$tame", :online, run} ->
        :ok = JobProbe."$tame"(:erlang.system_info(:schedulers_online), :online, [])
        hand_over(run, ref)
    end
  end

  defp go_on(run, args \\ [300, "long enough s"]), do: JobProbe."$tame"(run, make_ref(), args)

  defp answer_asked(ref) do
    receive do
      {from, :wait_for_message, []} ->
        receive(do: ({^ref, _} -> send(from, {self(), :ok})))

      {from, run, args} ->
        send(from, {self(), catch_error(fn -> go_on(run, args) end)})
    end

    answer_asked(ref)
  end

  defp ask(pid, run, args) do
    send(pid, {self(), run, args})
    receive(do: ({^pid, answer} -> answer))
  end
end
