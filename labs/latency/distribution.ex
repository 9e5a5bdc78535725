defmodule Tame.Latency.Distribution do
  @moduledoc """
  Makes the VM a distributed node for as long as a process needs it to be one.

  A VM that is distributed already is used as it is. Otherwise the first `join/0` starts
  distribution: a hidden node with a name of its own at 127.0.0.1, a random cookie, and a listening
  socket on the loopback interface only. If no epmd answers there, one is started too, bound to
  127.0.0.1. The last `leave/0` ends both, and so does the death of the last process that joined.

  One process keeps count. It lives from the first `join/0` to the last `leave/0`, linked to
  nobody; it monitors those who joined. epmd hangs on a port of that process by way of a shell
  that waits for the end of its standard input, so that epmd goes even when the VM gets SIGKILL.

  ## What it cannot do

  The VM reads its cookie file when distribution starts, and makes `~/.erlang.cookie` if there
  is none. Another node that registers with an epmd of ours loses it when we leave. And two VMs
  that both find no epmd at the same moment share the one that came first.
  """

  use GenServer

  alias Tame.Latency.Program

  @typedoc "What another program needs to connect: our name, our cookie, and epmd's port."
  @type self_description :: %{node: node(), cookie: atom(), epmd_port: :inet.port_number()}

  @default_epmd_port 4369
  @epmd_ms 5_000
  @call_ms 30_000

  # Runs a program until standard input ends or says anything. The program is not waited for
  # before, so its number is not given to another process meanwhile.
  @guard ~S("$@" & child=$!; read -r goodbye; kill "$child"; wait "$child")

  @doc "Makes sure that the VM is distributed until the calling process leaves, or dies."
  @spec join() :: {:ok, self_description()} | {:skip, String.t()} | {:error, String.t()}
  def join, do: call(:join)

  @doc "Takes back one `join/0` of the calling process."
  @spec leave() :: :ok
  def leave, do: call(:leave)

  # The server that we found may be about to stop: then another one takes its place.
  defp call(request) do
    server =
      case GenServer.start(__MODULE__, nil, name: __MODULE__) do
        {:ok, pid} -> pid
        {:error, {:already_started, pid}} -> pid
      end

    GenServer.call(server, request, @call_ms)
  catch
    :exit, {reason, {GenServer, :call, _}} when reason in [:normal, :noproc] -> call(request)
  end

  # ---- the process that counts ---------------------------------------------------------------

  defstruct users: [], epmd: nil, started?: false

  @impl true
  def init(nil) do
    Process.flag(:trap_exit, true)
    {:ok, %__MODULE__{}}
  end

  @impl true
  def handle_call(:join, {pid, _}, state) do
    case start(state) do
      {:ok, state} ->
        users = [{pid, Process.monitor(pid)} | state.users]
        {:reply, {:ok, describe()}, %{state | users: users}}

      {problem, why, state} ->
        stop_unless_used(state, {problem, why})
    end
  end

  def handle_call(:leave, {pid, _}, state) do
    users =
      case List.keytake(state.users, pid, 0) do
        {{^pid, monitor}, users} ->
          Process.demonitor(monitor, [:flush])
          users

        nil ->
          state.users
      end

    stop_unless_used(%{state | users: users}, :ok)
  end

  @impl true
  def handle_info({:DOWN, monitor, :process, _, _}, state) do
    case %{state | users: List.keydelete(state.users, monitor, 1)} do
      %{users: []} = state -> {:stop, :normal, stop(state)}
      state -> {:noreply, state}
    end
  end

  # What epmd prints, and its end. Those who need epmd notice by themselves.
  def handle_info(_, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state), do: stop(state)

  # Only when all is stopped is the reply sent: nothing is left when leave/0 returns.
  defp stop_unless_used(%{users: []} = state, reply), do: {:stop, :normal, reply, stop(state)}
  defp stop_unless_used(state, reply), do: {:reply, reply, state}

  defp describe, do: %{node: node(), cookie: Node.get_cookie(), epmd_port: epmd_port()}

  # ---- distribution --------------------------------------------------------------------------

  defp start(state) do
    if Node.alive?() do
      {:ok, state}
    else
      with {:ok, state} <- start_epmd(state), do: start_node(state)
    end
  end

  defp start_node(state) do
    name = :"tame_#{System.pid()}_#{System.unique_integer([:positive])}@127.0.0.1"
    options = %{name_domain: :longnames, hidden: true}

    case on_loopback(fn -> :net_kernel.start(name, options) end) do
      {:ok, _} ->
        Node.set_cookie(random_cookie())
        {:ok, %{state | started?: true}}

      {:error, why} ->
        {:error, "distribution does not start: #{inspect(why, limit: 10)}", state}
    end
  end

  # The setting counts only while the node opens its listening socket.
  defp on_loopback(start) do
    before = Application.fetch_env(:kernel, :inet_dist_use_interface)
    Application.put_env(:kernel, :inet_dist_use_interface, {127, 0, 0, 1})

    try do
      start.()
    after
      case before do
        {:ok, interface} -> Application.put_env(:kernel, :inet_dist_use_interface, interface)
        :error -> Application.delete_env(:kernel, :inet_dist_use_interface)
      end
    end
  end

  # Without :crypto, which nothing else here needs.
  defp random_cookie do
    {:ok, random} = :file.open("/dev/urandom", [:read, :raw, :binary])
    {:ok, bytes} = :file.read(random, 16)
    :file.close(random)
    String.to_atom("tame_" <> Base.encode16(bytes))
  end

  defp stop(state) do
    if state.started?, do: Tame.Distributed.stop()
    if state.epmd, do: Program.close(state.epmd)
    %__MODULE__{}
  end

  # ---- epmd ------------------------------------------------------------------------------------

  defp start_epmd(state) do
    if epmd_answers?() do
      {:ok, state}
    else
      with {:ok, epmd} <- epmd_program(),
           {:ok, program} <-
             Program.open("/bin/sh", ["-c", @guard, "guard" | epmd], Program.lines()) do
        await_epmd(%{state | epmd: program}, System.monotonic_time(:millisecond) + @epmd_ms)
      else
        {problem, why} -> {problem, why, state}
      end
    end
  end

  defp epmd_program do
    case System.find_executable("epmd") do
      nil ->
        {:skip, "no epmd: none answers on 127.0.0.1:#{epmd_port()}, and there is none on PATH"}

      path ->
        {:ok, [path, "-address", "127.0.0.1", "-port", "#{epmd_port()}"]}
    end
  end

  # epmd does not say when it is ready, so it is asked until it answers.
  defp await_epmd(state, deadline) do
    cond do
      epmd_answers?() ->
        {:ok, %{state | epmd: Program.hold_stdin(state.epmd)}}

      System.monotonic_time(:millisecond) > deadline ->
        {:error, "no epmd: the one we started does not answer on 127.0.0.1:#{epmd_port()}", state}

      true ->
        Process.sleep(10)
        await_epmd(state, deadline)
    end
  end

  defp epmd_answers?, do: match?({:ok, _}, :net_adm.names(~c"127.0.0.1"))

  # Where the VM looks: ERL_EPMD_PORT as it was when the VM started.
  defp epmd_port do
    case :init.get_argument(:epmd_port) do
      {:ok, [[port | _] | _]} -> List.to_integer(port)
      :error -> @default_epmd_port
    end
  end
end
