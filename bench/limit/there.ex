defmodule Bench.Limit.There do
  # Runs in a VM of its own.
  @compile {:no_warn_undefined, [:bench_bare, :bench_clock, :bench_limit]}

  # p50, p99 and p99.9.
  @parts [0.5, 0.99, 0.999]

  # ns a call, each by itself; the median.
  def p50(function, argument, calls) do
    :erlang.garbage_collect()
    times = for _ <- 1..calls, do: ns(function, argument)
    Enum.at(Enum.sort(times), div(calls, 2))
  end

  defp ns({module, name}, argument) do
    start = :erlang.monotonic_time()
    _ = apply(module, name, [argument])
    :erlang.monotonic_time() - start
  end

  def mailbox(function, argument, calls, messages) do
    {pid, monitor} =
      spawn_monitor(fn ->
        for n <- 1..messages//1, do: send(self(), n)
        exit({:p50, p50(function, argument, calls)})
      end)

    receive do
      {:DOWN, ^monitor, :process, ^pid, {:p50, ns}} -> ns
    end
  end

  # What a function of this module says of bench_bare, whose thread is there for that long and no longer.
  def bare(how, function, args) do
    :ok = :bench_bare.start(how)
    seen = apply(__MODULE__, function, args)
    :ok = :bench_bare.stop()
    seen
  end

  # `count` processes call a function of 1 µs at the same time: {calls per second, [ns at each of these parts]}. With that
  # many schedulers less.
  def callers(function, argument, count, calls, less) do
    online = :erlang.system_info(:schedulers_online)
    :erlang.system_flag(:schedulers_online, max(1, online - less))
    seen = callers(function, argument, count, calls)
    :erlang.system_flag(:schedulers_online, online)
    seen
  end

  defp callers(function, argument, count, calls) do
    start = :erlang.monotonic_time()

    tasks =
      for _ <- 1..count,
          do: Task.async(fn -> for _ <- 1..calls, do: ns(function, argument) end)

    times = tasks |> Task.await_many(:infinity) |> Enum.concat() |> Enum.sort()
    seconds = (:erlang.monotonic_time() - start) / 1.0e9
    {count * calls / seconds, for(part <- @parts, do: Enum.at(times, floor(length(times) * part)))}
  end

  # A call at each tick of a clock: {median ns, CPU of the VM and of its hosts in % of a core}.
  def rate(function, argument, per_second, calls) do
    cpu = cpu_ns()
    start = :erlang.monotonic_time()
    :ok = :bench_clock.ticks(div(1_000_000_000, per_second), calls)

    times =
      for _ <- 1..calls do
        receive do
          :tick -> if function == nil, do: 0, else: ns(function, argument)
        end
      end

    elapsed = :erlang.monotonic_time() - start
    {Enum.at(Enum.sort(times), div(calls, 2)), 100 * (cpu_ns() - cpu) / elapsed}
  end

  # CPU in % of a core: {the VM's, its hosts'}.
  def idle(seconds) do
    before = {vm_ns(), hosts_ns()}
    start = :erlang.monotonic_time()
    Process.sleep(seconds * 1000)
    elapsed = :erlang.monotonic_time() - start

    {100 * (vm_ns() - elem(before, 0)) / elapsed, 100 * (hosts_ns() - elem(before, 1)) / elapsed}
  end

  defp cpu_ns, do: vm_ns() + hosts_ns()
  defp vm_ns, do: process_ns("self")

  defp hosts_ns do
    hosts = for %{hosts: hosts} <- Map.values(:tame.info()), host <- hosts, do: host.os_pid
    hosts |> Enum.map(&process_ns/1) |> Enum.sum()
  end

  # Threads that have ended do not count; none ends here.
  defp process_ns(pid) do
    for stat <- Path.wildcard("/proc/#{pid}/task/*/schedstat"),
        {:ok, text} <- [File.read(stat)],
        reduce: 0 do
      sum -> sum + (text |> String.split() |> hd() |> String.to_integer())
    end
  end

  def us(function, argument, calls) do
    {module, name, rest} = function
    :erlang.garbage_collect()

    {us, :ok} =
      :timer.tc(fn ->
        Enum.each(1..calls, fn _ -> apply(module, name, [argument | rest]) end)
      end)

    us / calls
  end

  # What the terms of a call take to be written and read, by the emulator itself: the arguments on their way to the host,
  # the reply on its way back, which makes no atoms.
  def translation_us({module, name, rest}, argument, calls) do
    args = [argument | rest]
    reply = apply(module, name, args)
    :erlang.garbage_collect()

    {us, :ok} =
      :timer.tc(fn ->
        Enum.each(1..calls, fn _ ->
          _ = :erlang.binary_to_term(:erlang.term_to_binary(args))
          :erlang.binary_to_term(:erlang.term_to_binary(reply), [:safe])
        end)
      end)

    us / calls
  end
end
