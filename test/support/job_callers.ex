defmodule Tame.JobCallers do
  @moduledoc "Processes that call `Tame.JobProbe`, and what is waited for; `path` is the file of its counters."

  alias Tame.JobProbe

  # Longer than any test takes: a job of that length ends because it was stopped.
  @endless_us 600_000_000

  def endless_us, do: @endless_us

  @doc """
  A process that calls this function of the probe. What `bytes` end with says what the job does; 1000 are too many to be
  copied into the process.
  """
  def start(function, us, bytes \\ String.duplicate("s", 1000)) do
    if String.ends_with?(to_string(function), "_nif") do
      # No frame of any module below the NIF.
      :erlang.spawn_monitor(JobProbe, function, [us, bytes])
    else
      spawn_monitor(fn -> exit({:value, apply(JobProbe, function, [us, bytes])}) end)
    end
  end

  @doc "A caller that waits, or has ended already."
  def start_and_wait(function) do
    caller = {pid, _} = start(function, 100)
    wait_until(fn -> waits?(caller) or not Process.alive?(pid) end)
    caller
  end

  @doc "Kills a caller, and awaits its end."
  def stop({pid, _} = caller) do
    Process.exit(pid, :kill)
    await(caller)
  end

  @doc "How a caller ended."
  def await({pid, monitor}) do
    receive do
      {:DOWN, ^monitor, :process, ^pid, {:value, value}} -> {:value, value}
      {:DOWN, ^monitor, :process, ^pid, {reason, stack}} when is_list(stack) -> {:error, reason}
      {:DOWN, ^monitor, :process, ^pid, reason} -> reason
    after
      20_000 -> {:still_there, Process.info(pid)}
    end
  end

  @doc "Whether a caller waits: for its turn, or until the steps are done."
  def waits?({pid, _}) do
    match?(
      [current_function: {:tame_job_call, :hand_over, _}, status: :waiting],
      Process.info(pid, [:current_function, :status])
    )
  end

  @doc "Whether all that was begun has been cleaned up."
  def ended?(path) do
    counters = JobProbe.counters(path)
    counters.init == counters.cleanup
  end

  @doc "Callers who keep all workers of the pool until `release/2`."
  def hold_pool(path) do
    workers = :erlang.system_info(:schedulers_online)
    before = JobProbe.counters(path).step
    running = for _ <- 1..workers, do: start(:held, 1)
    wait_until(fn -> JobProbe.counters(path).step == before + workers end)
    running
  end

  @doc "Lets those of `hold_pool/1` go. Results are numbered: theirs come before the others'."
  def release(running, path) do
    JobProbe.release(path)
    for caller <- running, do: await(caller)
  end

  @doc "How many of two calls of this function, whose gate has two places, get one."
  def admitted(function, path) do
    before = JobProbe.counters(path).init
    running = for _ <- 1..2, do: start(function, @endless_us)
    catch_timeout(fn -> wait_until(fn -> JobProbe.counters(path).init == before + 2 end, 5000) end)
    admitted = JobProbe.counters(path).init - before
    Enum.each(running, &stop/1)
    admitted
  end

  @doc "Busy processes. What is loaded beside them takes seconds, so it is loaded before."
  def neighbours(count, busy) do
    :ok =
      :code.ensure_modules_loaded([
        Tame.Await,
        File,
        Map,
        Enum,
        String,
        String.Chars,
        String.Chars.Atom
      ])

    for _ <- 1..count, do: spawn(busy)
  end

  @doc "Computes for ever."
  def busy, do: busy()

  @doc "Has turns of 1 ms, for ever."
  def spin do
    :tame_spin.spin_inline(1000)
    spin()
  end

  @doc "Computes until then, by the monotonic clock."
  def spin_until(at_us) do
    if System.monotonic_time(:microsecond) < at_us, do: spin_until(at_us)
  end

  @doc "Throws `:timeout` where it does not come to that in time."
  def wait_until(condition, ms \\ 20_000) do
    if not Tame.Await.until(condition, ms), do: throw(:timeout), else: :ok
  end

  @doc "The value, or what was raised."
  def catch_error(fun) do
    fun.()
  catch
    :error, reason -> reason
  end

  @doc "The value, or `:timeout` of `wait_until/2`."
  def catch_timeout(fun) do
    fun.()
  catch
    :timeout -> :timeout
  end
end
