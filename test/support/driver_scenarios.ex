defmodule Tame.DriverScenarios do
  @moduledoc "What a test does with `Tame.DriverProbe` inside a throw-away emulator."

  import Tame.DriverProbe

  alias Tame.{Await, OsThreads}

  # ---- callbacks ---------------------------------------------------------------------------------

  @doc "What comes of a piece of work that each kind of callback schedules: number by number."
  def everywhere do
    port = port()

    answers =
      for {what, n} <-
            Enum.with_index(
              ~w(work_cpu work_io work_port job_cpu job_port pipe post chain timer)a,
              1
            ) do
        :ok = ask(port, what, n, 300)
        {what, answer(port) == n}
      end

    4711 = :erlang.port_call(port, 21, 4711)
    called = answer(port)
    true = Port.command(port, [<<1, 2>>, [:binary.copy(<<1>>, 100)], <<3>>])
    commanded = answer(port)
    :ok = ask(port, :again, 7, 100)
    again = answer(port)
    :ok = ask(port, :again, 0, 0)
    failed = answer(port)
    Port.close(port)
    {answers, called, commanded, again, failed, settled()}
  end

  @doc "Whether pieces of work of several kinds of one port end in the order in which they were scheduled."
  def order(count) do
    port = port()

    for n <- 1..count,
        do: :ok = ask(port, Enum.at([:work_cpu, :work_io, :job_cpu], rem(n, 3)), n, 10)

    answers = for _ <- 1..count, do: answer(port)
    Port.close(port)
    answers == Enum.to_list(1..count)
  end

  @doc "How often a port was on a scheduler while it did a step of that length there, in slices."
  def slices(us) do
    port = port()
    1 = :erlang.trace(port, true, [:running_ports])
    :ok = ask(port, :job_port, us)
    ^us = answer(port)
    1 = :erlang.trace(port, false, [:running_ports])
    delivered = :erlang.trace_delivered(:all)
    receive(do: ({:trace_delivered, :all, ^delivered} -> :ok))
    Port.close(port)
    turns(port, 0)
  end

  defp turns(port, count) do
    receive do
      {:trace, ^port, :in, _} -> turns(port, count + 1)
      {:trace, ^port, :out, _} -> turns(port, count)
    after
      0 -> count
    end
  end

  @doc "The reductions that callbacks of that length each cost their caller, in all."
  def charged(count, us) do
    port = port()
    before = reductions()
    for _ <- 1..count, do: :ok = ask(port, :spin, 0, us)
    charged = reductions() - before
    Port.close(port)
    charged
  end

  defp reductions, do: elem(Process.info(self(), :reductions), 1)

  @doc "Whether a port is served while others hold all but one of the I/O threads; their answers when let go."
  def beside_held(count) do
    held = for _ <- 1..count, do: port() |> tap(&(:ok = ask(&1, :hold, 1)))
    true = Await.until(fn -> counters().begun == count end)
    port = port()
    :ok = ask(port, :work_io, 5)
    :ok = ask(port, :work_cpu, 6)
    served = [answer(port), answer(port)]
    for port <- held, do: :ok = ask(port, :release)
    {served, Enum.map(held, &answer/1)}
  end

  # ---- the end of a port -------------------------------------------------------------------------

  @doc """
  A port that holds something outside, with more that waits, is ended by `ending`. What its owner saw, whether it
  was gone for Erlang at once, and the counters: shortly after, and when all is let go.
  """
  def ended(options, ending) do
    Process.flag(:trap_exit, true)
    :ok = load()
    parent = self()
    {owner, monitor} = spawn_monitor(fn -> own(parent, options) end)

    port =
      receive do
        {:port, port} -> port
        {:DOWN, ^monitor, :process, ^owner, reason} -> exit(reason)
      end

    true = Await.until(fn -> counters().begun == 1 end)
    finish(ending, owner, port)
    # One that waits in stop answers nobody.
    gone = ending == :kill_port or Await.until(fn -> ask(port, :work_cpu) == :refused end)
    # Where nothing wakes it nothing changes; so this is what it is like while it lasts.
    while_ms = if options == "stubborn", do: 300, else: 30_000
    stopped = Await.until(fn -> counters().stops == 1 end, while_ms)
    during = counters()
    release_all()
    later = settled()
    Process.exit(owner, :kill)
    receive(do: ({:DOWN, ^monitor, :process, ^owner, _} -> :ok))
    release_all(0)
    {gone, stopped, during, later}
  end

  defp own(parent, options) do
    Process.flag(:trap_exit, true)
    port = open(options)
    :ok = ask(port, :hold, 1)
    true = Await.until(fn -> counters().begun == 1 end)
    for n <- 2..6, do: :ok = ask(port, Enum.at([:work_cpu, :job_cpu], rem(n, 2)), n, 1000)
    send(parent, {:port, port})

    receive do
      {:close, to} -> send(to, {:closed, Port.close(port)})
    end

    receive(do: (:never -> :ok))
  end

  defp finish(:close, owner, _port) do
    send(owner, {:close, self()})
    receive(do: ({:closed, true} -> :ok))
  end

  defp finish(:owner_killed, owner, _port), do: Process.exit(owner, :kill)
  defp finish(:exit_signal, _owner, port), do: Process.exit(port, :gone)

  # It does not flush. It comes back when stop has, which holds a scheduler, so another process says it.
  defp finish(:kill_port, _owner, port), do: spawn(fn -> Process.exit(port, :kill) end)

  @doc "How a port ends that its driver ends while something is outside: the exit's reason, and the counters."
  def failed(command, options \\ "") do
    Process.flag(:trap_exit, true)
    port = port(options)
    if command != :fail_outside, do: :ok = ask(port, :hold, 1)
    if command != :fail_outside, do: true = Await.until(fn -> counters().begun == 1 end)
    if command == :fail_here, do: spawn(fn -> Process.sleep(50) && release_all() end)
    _ = ask(port, command, 1)
    reason = answer(port)
    _ = release_all()
    {reason, answer(port, 100), settled()}
  end

  @doc "Opening a port that the driver refuses, and what is left of it."
  def refused do
    :ok = load()

    error =
      try do
        open("refuse")
      rescue
        error -> error
      end

    {error, settled()}
  end

  # ---- floods ------------------------------------------------------------------------------------

  @doc "Many processes send commands to one port that is held; then all is let go. What its owner counts."
  def flood(senders, each) do
    port = port()
    :ok = ask(port, :hold, 0)
    true = Await.until(fn -> counters().begun == 1 end)
    bytes = :binary.copy(<<1>>, 100)

    pids =
      for _ <- 1..senders do
        spawn_monitor(fn -> for _ <- 1..each, do: true = Port.command(port, bytes) end)
      end

    # Senders stand still, and so does what waits; a command that may not wait is not taken.
    busy = Await.until(fn -> Port.command(port, bytes, [:nosuspend]) == false end)
    waiting = ask(port, :waiting)
    :ok = ask(port, :release)
    for {pid, monitor} <- pids, do: receive(do: ({:DOWN, ^monitor, :process, ^pid, :normal} -> :ok))
    # Sent outside, commands may overtake what was held, which answers under the port's lock.
    answers = for n <- take(port, []), n == 100, do: n
    Port.close(port)
    {busy, hd(waiting), length(answers), settled()}
  end

  defp release(port) do
    :ok = ask(port, :release)
    answer(port)
  end

  defp take(port, taken) do
    case answer(port, 5000) do
      :nothing -> taken
      n -> take(port, [n | taken])
    end
  end

  @doc "How many pieces of work a held port takes until it takes no more, and what it answers then."
  def filled do
    port = port()
    :ok = ask(port, :hold, 0)
    true = Await.until(fn -> counters().begun == 1 end)
    taken = Enum.take_while(1..20_000, fn n -> ask(port, :work_cpu, n) == :ok end) |> length()
    :ok = ask(port, :again, 5)
    said = answer(port)
    0 = release(port)
    answers = for _ <- 1..taken, do: answer(port)
    Port.close(port)
    {taken, said, answers == Enum.to_list(1..taken), settled()}
  end

  @doc "Cycles of open, work and an end, of several kinds in turn. Descriptors and threads before and after."
  def cycles(count) do
    :ok = load()
    Process.flag(:trap_exit, true)

    round = fn n ->
      cycle(Enum.at([:work_cpu, :job_cpu, :hold, :post, :pipe, :nothing], rem(n, 6)), n)
    end

    for n <- 1..200, do: round.(n)
    before = {fds(), OsThreads.count()}
    for n <- 1..count, do: round.(n)
    now = settled()
    true = Await.until(fn -> fds() <= elem(before, 0) end)
    {before, {fds(), OsThreads.count()}, now}
  end

  defp cycle(what, n) do
    port = open()
    if what != :nothing, do: :ok = ask(port, what, n, 5)
    if rem(n, 4) != 0 and what not in [:hold, :nothing], do: ^n = answer(port)
    if rem(n, 3) == 0, do: Process.exit(port, :kill), else: Port.close(port)
    receive(do: ({:EXIT, ^port, _} -> :ok))
    if what == :hold, do: settled()
  end

  def fds, do: length(File.ls!("/proc/self/fd"))

  @doc "What a port answers when there is no descriptor left for it, and when there is again."
  def without_descriptors do
    port = port()
    closed = open()
    Port.close(closed)
    # No module is loaded without a descriptor; so all that is needed is used once.
    :refused = ask(closed, :work_cpu)
    {:module, _} = Code.ensure_loaded(Enum)
    files = open_all([])
    refused = ask(port, :work_cpu, 1)
    again = ask(port, :again, 1)
    busy = answer(port)
    for file <- files, do: :file.close(file)
    :ok = ask(port, :work_cpu, 3)
    {refused, again, busy, answer(port)}
  end

  defp open_all(files) do
    case :file.open(~c"/dev/null", [:read, :raw]) do
      {:ok, file} -> open_all([file | files])
      {:error, :emfile} -> files
    end
  end

  @doc "Ports in great number, whose owners and themselves are ended at any moment."
  def storm(count) do
    :ok = load()

    for n <- 1..count do
      {owner, monitor} =
        spawn_monitor(fn ->
          port = open(Enum.random(["", "polite"]))

          for _ <- 1..5 do
            command =
              Enum.random(~w(work_cpu work_io work_port job_cpu job_port again post pipe chain hold
                timer)a)

            _ = ask(port, command, 3, :rand.uniform(200))
          end

          _ = Port.command(port, :binary.copy(<<1>>, 5000))
          if rem(n, 3) == 0, do: Process.exit(port, :kill)
          if rem(n, 3) == 1, do: Port.close(port)
          receive(do: (:never -> :ok))
        end)

      :timer.sleep(div(:rand.uniform(2000), 1000))
      Process.exit(owner, :kill)
      receive(do: ({:DOWN, ^monitor, :process, ^owner, _} -> :ok))
    end

    settled()
  end

  # ---- the driver --------------------------------------------------------------------------------

  @doc "The driver is to be replaced beside a port with work outside: by another file, and by the same when it is free."
  def reload_refused do
    :ok = load()
    port = open("stubborn")
    :ok = ask(port, :hold, 1)
    true = Await.until(fn -> counters().begun == 1 end)
    {:error, reason} = :erl_ddll.try_load(~c"/tmp", name(), [])
    pending = :erl_ddll.try_load(folder(), name(), reload: :pending_driver)
    release_all()
    answer = answer(port)
    Port.close(port)
    {List.to_string(:erl_ddll.format_error(reason)), pending, answer, settled()}
  end

  @doc "Unload with a closed port's work outside: whether it stays, ends then, and leaves no thread."
  def unload_while_held do
    threads = OsThreads.count()
    :ok = load()
    port = open("stubborn")
    for n <- 1..4, do: :ok = ask(port, :work_cpu, n)
    for n <- 1..4, do: ^n = answer(port)
    :ok = ask(port, :hold, 1)
    true = Await.until(fn -> counters().begun == 5 end)
    Port.close(port)
    {:ok, :pending_driver} = :erl_ddll.try_unload(name(), [])
    # As long as it lasts.
    during = {name() in loaded(), counters().finishes}
    release_all()
    ended = Await.until(fn -> counters().finishes == 1 and name() not in loaded() end)
    later = settled()
    gone = Await.until(fn -> OsThreads.count() <= threads end)
    release_all(0)
    :ok = load()
    port = open()
    :ok = ask(port, :work_cpu, 9)
    {during, ended, gone, answer(port), later}
  end

  defp loaded do
    {:ok, names} = :erl_ddll.loaded_drivers()
    names
  end

  @doc "Halts, with something outside."
  def halt(options, how) do
    port = port(options)
    :ok = ask(port, :hold, 1)
    for n <- 1..3, do: :ok = ask(port, :work_cpu, n)
    true = Await.until(fn -> counters().begun == 1 end)
    :erlang.halt(0, how)
  end

  @doc "How long work of no length takes in a second port, in µs, shortly after one of 3 s has begun in another."
  def second_port_us(function) do
    :ok = apply(:tame_spin_driver, function, [0])
    {pid, monitor} = spawn_monitor(:tame_spin_driver, function, [3_000_000])
    Process.sleep(50)
    {us, :ok} = :timer.tc(:tame_spin_driver, function, [0])
    receive(do: ({:DOWN, ^monitor, :process, ^pid, :normal} -> us))
  end

  defp port(options \\ "") do
    :ok = load()
    open(options)
  end
end
