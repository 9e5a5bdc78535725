defmodule Tame.Watch.Screen do
  @moduledoc """
  The full screen of the watch: the one module of it that has the terminal, which is `:tame_tty`'s.

  A process draws, another asks the node for what the seconds do not have, because it may be slow to answer. The labs
  work without `tame_tty`, a package of its own: `here?/0` says whether the project has it.
  """

  # No dependency of a project that has the labs: here?/0 asks for it.
  @compile {:no_warn_undefined, :tame_tty}

  alias Tame.FunctionName
  alias Tame.Watch.{Connection, Layout, View}

  @hosts_ms 2000
  @answer_ms 2000

  @details ~w(registered_name current_function status message_queue_len reductions memory)a

  @doc "Whether the library is there that has the terminal."
  @spec here?() :: boolean()
  def here?, do: Code.ensure_loaded?(:tame_tty)

  @doc """
  Shows a view of the node until `stop/1`, or until the calling process ends. When who looks at it has seen enough, the
  calling process gets what `Tame.Watch.quit/1` sends. The error says why there is no terminal for it.
  """
  @spec start(node()) :: {:ok, pid()} | {:error, String.t()}
  def start(node) do
    watcher = self()
    reference = make_ref()

    {screen, monitor} =
      spawn_monitor(fn ->
        watcher_monitor = Process.monitor(watcher)

        case :tame_tty.open(%{cursor: false}) do
          {:ok, tty} ->
            send(watcher, {reference, :ok})
            screen = self()
            asker = spawn_link(fn -> ask(node, screen) end)
            {:ok, size} = :tame_tty.size(tty)

            loop(%{
              tty: tty,
              size: size,
              view: View.new("#{node}"),
              drawn: [],
              asker: asker,
              watcher: watcher,
              monitor: watcher_monitor
            })

          {:error, reason} ->
            send(watcher, {reference, {:error, to_string(:tame_tty.format_error(reason))}})
        end
      end)

    receive do
      {^reference, :ok} ->
        Process.demonitor(monitor, [:flush])
        {:ok, screen}

      {^reference, error} ->
        Process.demonitor(monitor, [:flush])
        error

      {:DOWN, ^monitor, _, _, reason} ->
        {:error, "the screen fails: #{inspect(reason, limit: 5)}"}
    end
  end

  @doc "A second, as `Tame.Watch` tells it."
  @spec second(pid(), Tame.Watch.Facts.t(), Tame.Watch.Second.t(), [Tame.Watch.Calls.call()]) ::
          :ok
  def second(screen, facts, second, calls) do
    send(screen, {:second, facts, second, calls})
    :ok
  end

  @doc "Ends it: the terminal is as before when this returns."
  @spec stop(pid()) :: :ok
  def stop(screen) do
    monitor = Process.monitor(screen)
    send(screen, :stop)

    receive do
      {:DOWN, ^monitor, _, _, _} -> :ok
    end
  end

  # ---- drawing --------------------------------------------------------------------------------------

  defp loop(%{tty: tty, view: view, monitor: monitor} = state) do
    state = draw(state)

    receive do
      {:second, facts, second, calls} ->
        loop(%{state | view: View.second(view, facts, second, calls)})

      {:hosts, hosts} ->
        loop(%{state | view: View.hosts(view, hosts)})

      {:details, process, lines} ->
        loop(%{state | view: View.details(view, process, lines)})

      {:tame_tty, ^tty, {:resize, size}} ->
        loop(%{state | size: size, drawn: []})

      {:tame_tty, ^tty, {:closed, _reason}} ->
        Tame.Watch.quit(state.watcher)
        exit(:shutdown)

      {:tame_tty, ^tty, event} ->
        event(View.key(view, event), state)

      :stop ->
        close(tty)

      {:DOWN, ^monitor, _, _, _} ->
        close(tty)
    end
  end

  # The process that asks goes too.
  defp close(tty) do
    :ok = :tame_tty.close(tty)
    exit(:shutdown)
  end

  # The watch prints its summary, when it has ended on the node as well: until then the screen stays.
  defp event(:quit, state) do
    Tame.Watch.quit(state.watcher)
    loop(state)
  end

  defp event(:redraw, state), do: loop(%{state | drawn: []})

  defp event({:ask, process, view}, state) do
    send(state.asker, {:ask, process})
    loop(%{state | view: view})
  end

  defp event(view, state), do: loop(%{state | view: view})

  # Only the lines that have changed.
  defp draw(%{drawn: drawn} = state) do
    lines = Layout.lines(state.view, state.size)
    clear = if drawn == [], do: "\e[2J", else: []

    changed =
      lines
      |> Enum.with_index(1)
      |> Enum.reject(fn {line, row} -> drawn != [] and Enum.at(drawn, row - 1) == line end)
      |> Enum.map(fn {line, row} -> ["\e[#{row};1H", Enum.map(line, &cell/1), "\e[0m\e[K"] end)

    # A terminal that is gone tells so by an event.
    _ = if changed != [], do: :tame_tty.write(state.tty, IO.iodata_to_binary([clear | changed]))
    %{state | drawn: lines}
  end

  defp cell({text, :plain}), do: ["\e[0m", text]
  defp cell({text, :bold}), do: ["\e[0;1m", text]
  defp cell({text, :dim}), do: ["\e[0;2m", text]
  defp cell({text, :reverse}), do: ["\e[0;7m", text]
  defp cell({text, :warn}), do: ["\e[0;1;31m", text]

  # ---- asking ---------------------------------------------------------------------------------------

  defp ask(node, screen) do
    send(screen, {:hosts, hosts(node)})
    asked(node, screen, System.monotonic_time(:millisecond) + @hosts_ms)
  end

  defp asked(node, screen, until) do
    receive do
      {:ask, process} ->
        send(screen, {:details, process, details(node, process)})
        asked(node, screen, until)
    after
      max(0, until - System.monotonic_time(:millisecond)) -> ask(node, screen)
    end
  end

  # nil: the node has no tame, or does not answer now.
  defp hosts(node) do
    with true <- node in Node.list(:connected),
         {:ok, true} <- call(node, :erlang, :function_exported, [:tame, :info, 0]),
         {:ok, %{} = modules} <- call(node, :tame, :info, []) do
      for {module, info} <- Enum.sort(modules), host <- info.hosts do
        %{
          module: inspect(module),
          state: "#{host.state}",
          os_pid: host.os_pid,
          rss_bytes: host.rss_bytes,
          waiting: info.waiting,
          restarts: info.restarts
        }
      end
    else
      _ -> nil
    end
  end

  defp details(node, process) do
    with {:ok, pid} when is_pid(pid) <- pid(node, process),
         {:ok, info} when is_list(info) <- call(node, :erlang, :process_info, [pid, @details]) do
      for {key, value} <- info, value != [], do: {"#{key}", value(key, value)}
    else
      {:ok, :undefined} ->
        [{"it has ended", ""}]

      {:error, :timeout} ->
        [{"no answer", "within 2 s: it is in native code on a normal scheduler"}]

      {:error, why} ->
        [{"no answer", inspect(why, limit: 5)}]
    end
  end

  defp pid(node, "<" <> _ = text),
    do: call(node, :erlang, :list_to_pid, [String.to_charlist(text)])

  # It is in the seconds, so the atom is there.
  defp pid(node, name), do: call(node, :erlang, :whereis, [String.to_existing_atom(name)])

  defp value(:current_function, {_, _, _} = function), do: FunctionName.text(function)
  defp value(_key, value), do: inspect(value)

  defp call(node, module, function, args),
    do: Connection.call(node, module, function, args, @answer_ms)
end
