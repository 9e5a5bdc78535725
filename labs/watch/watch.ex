defmodule Tame.Watch do
  @moduledoc """
  Watches a running node: how busy its schedulers are, who holds dirty threads, how late neighbours wake, and which
  NIFs held a scheduler.

  Three small Erlang modules are sent to the node, and a fourth to trace calls (`:tame_watch.modules/1`); the node
  needs neither tame nor Elixir. They remove themselves when this process ends the watch or dies, when the connection
  is lost, and when the time is up.
  """

  alias Tame.FunctionName
  alias Tame.Watch.{Blame, Calls, Connection, Facts, Second}

  @typedoc "`:slices` are the function whose calls are traced, and how many of them."
  @type options :: %{
          node: node(),
          cookie: String.t() | nil,
          for_ms: pos_integer(),
          slices: nil | {mfa(), pos_integer()},
          each: (Facts.t(), Second.t(), [Calls.call()] -> term())
        }

  @typedoc """
  `:ended` is nil when the watch lasted as long as it should; `:silent_ms` how long the node has not answered in all.
  """
  @type result :: %{
          facts: Facts.t(),
          seconds: [Second.t()],
          calls: [Calls.call()],
          calls_state: nil | String.t(),
          silent_ms: non_neg_integer(),
          ended: nil | String.t()
        }

  @module :tame_watch

  @second_ms 1000
  # The node is alive as long as it is connected; it may be held by native code for long.
  @answer_ms 10_000
  # The module there outlives its time by this, so that it is we who end it.
  @grace_ms 30_000

  # How old the list of the node's NIFs may be.
  @nifs_ms 5000

  # Seconds beyond this are left out of the result, the oldest first: a watch may last for hours.
  @most_seconds 3600

  @doc "Ends a watch that another process runs, before its time; its result is as if the time were up."
  @spec quit(pid()) :: :ok
  def quit(watcher) do
    send(watcher, {__MODULE__, :quit})
    :ok
  end

  @doc "Watches until the time is up, the node is gone, or `quit/1` was called."
  @spec run(options()) :: {:ok, result()} | {:error, String.t()}
  def run(options) do
    with {:ok, whose} <- Connection.open(options.node, options.cookie) do
      try do
        with {:ok, facts} <- facts(options.node),
             :ok <- known(options.node, options.slices),
             {:ok, keeper} <- inject(options) do
          watch(keeper, facts, options)
        end
      after
        Connection.close(whose)
      end
    end
  end

  defp facts(node), do: node |> Facts.collect() |> told(node)

  defp told({:ok, value}, _node), do: {:ok, value}

  defp told({:error, why}, node),
    do: {:error, "#{node}: does not answer: #{inspect(why, limit: 5)}"}

  # ---- the modules there -----------------------------------------------------------------------------

  defp known(_node, nil), do: :ok

  defp known(node, {{module, name, arity} = function, _calls}) do
    with {:ok, {:module, _}} <- Connection.call(node, :code, :ensure_loaded, [module]),
         {:ok, functions} <-
           Connection.call(node, :erlang, :get_module_info, [module, :functions]),
         true <- {name, arity} in functions do
      :ok
    else
      _ -> {:error, "--slices #{FunctionName.text(function)}: there is no such function on #{node}"}
    end
  end

  defp inject(%{node: node} = options) do
    slices = if options.slices, do: %{slices: options.slices}, else: %{}
    modules = @module.modules(slices)

    with :ok <- absent(node, modules),
         :ok <- load(node, modules),
         {:ok, {:ok, keeper}} <- start(node, options, slices) do
      {:ok, keeper}
    else
      {:error, {:present, module}} ->
        {:error, present(node, module)}

      {:error, {:load, why}} ->
        remove(node, modules)
        {:error, "#{node}: #{why}"}

      {_, why} ->
        # Nobody there uses the modules, and their own way to go has not begun.
        remove(node, modules)
        {:error, "#{node}: the watch does not start: #{inspect(why, limit: 5)}"}
    end
  end

  defp absent(node, modules) do
    Enum.find_value(modules, :ok, fn module ->
      case Connection.call(node, :erlang, :module_loaded, [module]) do
        {:ok, false} -> nil
        {:ok, true} -> {:error, {:present, module}}
        {:error, why} -> {:error, {:load, no_load(why)}}
      end
    end)
  end

  defp load(node, modules) do
    Enum.find_value(modules, :ok, fn module ->
      {^module, beam, file} = :code.get_object_code(module)

      case Connection.call(node, :code, :load_binary, [module, file, beam]) do
        {:ok, {:module, ^module}} ->
          nil

        {:ok, {:error, why}} ->
          {:error,
           {:load,
            "does not load the module compiled here by OTP #{:erlang.system_info(:otp_release)} (#{inspect(why)}): " <>
              "expected an OTP as new, or run mix tame.watch on its own"}}

        {:error, why} ->
          {:error, {:load, no_load(why)}}
      end
    end)
  end

  defp no_load(why), do: "does not load the module: #{inspect(why, limit: 5)}"

  defp start(node, options, slices) do
    there = Map.merge(%{watcher: self(), limit_ms: options.for_ms + @grace_ms}, slices)
    Connection.call(node, @module, :start, [there])
  end

  defp remove(node, modules) do
    for module <- modules, function <- [:delete, :purge] do
      Connection.call(node, :code, function, [module])
    end
  end

  defp present(node, module) do
    case Connection.call(node, :erlang, :whereis, [@module]) do
      {:ok, pid} when is_pid(pid) ->
        "#{node}: somebody watches it already (#{Second.process(pid, :undefined)} there); expected a node without #{module}"

      _ ->
        "#{node}: has a module #{module} already, which nobody uses; remove it there with " <>
          "code:delete(#{module}), code:purge(#{module})"
    end
  end

  # ---- watching -------------------------------------------------------------------------------------

  defp watch(keeper, facts, options) do
    monitor = Process.monitor(keeper)
    blame = blame(options.node)
    began = now_ms()

    state = %{
      keeper: keeper,
      monitor: monitor,
      facts: facts,
      options: options,
      blame: blame,
      nifs_at: began - @nifs_ms,
      base: nil,
      events: [],
      next: began,
      until: began + options.for_ms,
      result: %{
        facts: facts,
        seconds: [],
        calls: [],
        calls_state: nil,
        silent_ms: 0,
        ended: nil
      }
    }

    result = seconds(state)
    {:ok, %{result | seconds: Enum.reverse(result.seconds)}}
  end

  defp nifs(node) do
    case Connection.call(node, :tame_watch_scanner, :nifs, []) do
      {:ok, nifs} -> nifs
      {:error, _} -> []
    end
  end

  # Modules may be loaded during the watch, and one of them may be to blame.
  defp refreshed(%{long: []}, state), do: state

  defp refreshed(_report, state) do
    if now_ms() - state.nifs_at > @nifs_ms do
      blame = Blame.refresh(state.blame, nifs(state.options.node))
      %{state | blame: blame, nifs_at: now_ms()}
    else
      state
    end
  end

  defp blame(node) do
    Blame.new(nifs(node), fn module ->
      case Connection.call(node, :code, :get_object_code, [module]) do
        {:ok, {^module, code, _file}} -> code
        _ -> nil
      end
    end)
  end

  # The first reading is what the others are counted from.
  defp seconds(state) do
    case ask(state, 0) do
      {:ok, reading, silent_ms} ->
        state = put_in(state.result.silent_ms, state.result.silent_ms + silent_ms)
        state = second(reading, state)
        next = max(state.next + @second_ms, now_ms())

        if next > state.until do
          stop(state)
        else
          wait(state, next)
        end

      {:gone, reason} ->
        %{state.result | ended: gone(reason)}
    end
  end

  defp wait(%{monitor: monitor} = state, next) do
    receive do
      {:DOWN, ^monitor, _, _, reason} -> %{state.result | ended: gone(reason)}
      {__MODULE__, :quit} -> stop(state)
    after
      max(0, next - now_ms()) -> seconds(%{state | next: next})
    end
  end

  # A node whose schedulers are all held answers late, and is asked no more meanwhile.
  defp ask(%{keeper: keeper, monitor: monitor} = state, silent_ms) do
    reference = make_ref()
    send(keeper, {@module, :ask, self(), reference})
    await(reference, monitor, state, now_ms(), silent_ms)
  end

  defp await(reference, monitor, %{keeper: keeper} = state, asked, silent_ms) do
    receive do
      {^reference, reading} ->
        {:ok, reading, silent_ms}

      {:DOWN, ^monitor, _, _, reason} ->
        {:gone, reason}

      # The node's schedulers may be held: it is told, and not waited for.
      {__MODULE__, :quit} ->
        send(keeper, {@module, :stop})
        {:gone, {:shutdown, :stopped}}
    after
      @answer_ms ->
        # The keeper counts what it is asked, not what it has answered.
        send(keeper, {@module, :ask, self(), make_ref()})
        await(reference, monitor, state, asked, now_ms() - asked)
    end
  end

  defp second(reading, %{base: nil} = state) do
    calls(reading, %{state | base: %{last: reading, wall: reading}})
  end

  defp second(reading, state) do
    state = refreshed(reading, state)
    {second, blame} = Second.new(reading, state.base, state.facts, state.blame)
    state = acquitted(state, blame)
    wall = if reading.wall == :late, do: state.base.wall, else: reading
    state = calls(reading, %{state | blame: blame, base: %{last: reading, wall: wall}})
    state.options.each.(state.facts, second, state.result.calls)
    update_in(state.result.seconds, &Enum.take([second | &1], @most_seconds))
  end

  # What was said before more was known.
  defp acquitted(%{blame: %{dirty: dirty}} = state, %{dirty: dirty}), do: state

  defp acquitted(state, %{dirty: dirty}) do
    dirty = MapSet.new(dirty, &FunctionName.text/1)
    update_in(state.result.seconds, fn all -> Enum.map(all, &Second.acquit(&1, dirty)) end)
  end

  defp calls(%{calls: :none}, state), do: state

  defp calls(%{calls: {what, _count, events}}, state) do
    events = state.events ++ events
    words = calls_words(what)
    result = %{state.result | calls: Calls.read(events), calls_state: words}
    %{state | events: events, result: result}
  end

  defp calls_words(:tracing), do: "traced until the end"
  defp calls_words(:done), do: "done"

  defp calls_words({:refused, why}),
    do: "refused: somebody traces it already (#{inspect(why, limit: 5)})"

  defp stop(%{keeper: keeper, monitor: monitor} = state) do
    send(keeper, {@module, :stop})

    receive do
      {:DOWN, ^monitor, _, _, reason} ->
        case gone(reason) do
          nil -> state.result
          other -> %{state.result | ended: other}
        end
    after
      @answer_ms -> %{state.result | ended: "did not end within #{div(@answer_ms, 1000)} s"}
    end
  end

  defp gone({:shutdown, :stopped}), do: nil
  defp gone(:noconnection), do: "the connection was lost"

  defp gone({:shutdown, :time_is_up}),
    do: "the node ended the watch: it was not asked for too long"

  defp gone(reason), do: "the watch failed there: #{inspect(reason, limit: 8)}"

  defp now_ms, do: System.monotonic_time(:millisecond)
end
