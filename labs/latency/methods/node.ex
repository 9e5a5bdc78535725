defmodule Tame.Latency.Methods.NodeProgram do
  @moduledoc false
  # What both node methods share: a program that connects to this VM as a hidden node of its own,
  # tells us its pid, and answers {From, Ref, Term} by {Ref, Term}.
  #
  # The program ends when the connection is lost, so its exit status covers every way in which an
  # answer can fail to come; no monitor and no timer is needed for a call.

  alias Tame.Latency.{Distribution, Program}

  # Most of it is the start of a Java machine on a busy host.
  @hello_ms 30_000

  @doc """
  Starts a program; `args` is given the names of its node and ours.

  Options: `:cookie`, in place of our own (for tests).
  """
  @spec open(Path.t(), (String.t(), String.t() -> [String.t()]), keyword()) ::
          {:ok, term()} | {:skip, String.t()} | {:error, String.t()}
  def open(path, args, options) do
    with {:ok, vm} <- Distribution.join() do
      cookie = Keyword.get(options, :cookie, vm.cookie)

      case start(path, args, vm, cookie) do
        {:ok, state} ->
          {:ok, state}

        {:error, why} ->
          Distribution.leave()
          {:error, why}
      end
    end
  end

  defp start(path, args, vm, cookie) do
    epmd_port = {~c"ERL_EPMD_PORT", Integer.to_charlist(vm.epmd_port)}
    args = args.(own_name(vm.node), Atom.to_string(vm.node))

    with {:ok, program} <- Program.open(path, args, [{:env, [epmd_port]} | Program.lines()]) do
      token = make_ref()
      hello = Base.encode16(:erlang.term_to_binary({self(), token}))
      Port.command(program.port, [Atom.to_string(cookie), ?\n, hello, ?\n])
      await_hello(program, token)
    end
  end

  # At our own host: then it is short or long as our name is.
  defp own_name(vm) do
    [_, host] = vm |> Atom.to_string() |> String.split("@")
    "tame_peer_#{System.pid()}_#{System.unique_integer([:positive])}@#{host}"
  end

  defp await_hello(%Program{port: port} = program, token) do
    receive do
      {:tame_peer, pid, ^token} ->
        {:ok, {pid, port, Program.hold_stdin(program)}}

      {^port, {:exit_status, _}} = message ->
        send(self(), message)
        why = Program.how_it_ended(program)
        Program.close(program)
        {:error, why}
    after
      @hello_ms ->
        Program.close(program)
        {:error, "#{program.name} did not connect within #{div(@hello_ms, 1000)} s"}
    end
  end

  def echo({pid, port, program}, term) do
    ref = make_ref()
    send(pid, {self(), ref, term})

    receive do
      {^ref, back} ->
        back

      {^port, {:exit_status, _}} = message ->
        send(self(), message)
        Program.ended!(program)
    end
  end

  def close({_pid, _port, program}) do
    Program.close(program)
    Distribution.leave()
  end
end

defmodule Tame.Latency.Methods.CNode do
  @moduledoc """
  A node in C: `tame_c_node` with `ei`, over Erlang distribution.

  It answers with the very bytes it received. See `Tame.Latency.Distribution` for what is started
  when this VM is not distributed.
  """

  use Tame.Latency.Method,
    id: :c_node,
    isolation: :network,
    data_type: "distribution format",
    context_switch: "OS process, distribution"

  alias Tame.Latency.Methods.NodeProgram

  @impl true
  def open, do: open([])

  @doc false
  def open(options) do
    path = List.to_string(:tame_labs_native.path(~c"tame_c_node"))

    if File.exists?(path) do
      NodeProgram.open(path, &[&1, &2, creation()], options)
    else
      {:skip, "tame_c_node is not built: it needs erl_interface (Debian: erlang-dev)"}
    end
  end

  # What tells two nodes of the same name apart; ours have names of their own.
  defp creation, do: Integer.to_string(:rand.uniform(0xFFFFFFFF))

  @impl true
  defdelegate echo(state, term), to: NodeProgram

  @impl true
  defdelegate close(state), to: NodeProgram
end

defmodule Tame.Latency.Methods.JavaNode do
  @moduledoc """
  A node in Java: `tame.EchoNode` with Jinterface, over Erlang distribution.

  Jinterface makes objects of every term and bytes of those objects again. The first calls run
  interpreted; the lab's warm-up is for that.
  """

  use Tame.Latency.Method,
    id: :java_node,
    isolation: :network,
    data_type: "Java objects",
    context_switch: "OS process, distribution"

  alias Tame.Latency.Methods.NodeProgram

  @impl true
  def open, do: open([])

  @doc false
  def open(options) do
    with {:ok, java} <- java(),
         {:ok, jinterface} <- jinterface(),
         {:ok, jar} <- jar() do
      # The garbage collector without threads of its own: none of them wakes beside the echo.
      args = ["-XX:+UseSerialGC", "-cp", "#{jinterface}:#{jar}", "tame.EchoNode"]
      NodeProgram.open(java, &(args ++ [&1, &2]), options)
    end
  end

  defp java do
    case System.find_executable("java") do
      nil -> {:skip, "no Java runtime: there is no java on PATH"}
      path -> {:ok, path}
    end
  end

  defp jinterface do
    in_otp =
      case :code.lib_dir(:jinterface) do
        {:error, _} -> []
        dir -> [Path.join(dir, "priv/OtpErlang.jar")]
      end

    case Enum.find(in_otp ++ ["/usr/share/java/OtpErlang.jar"], &File.exists?/1) do
      nil -> {:skip, "no Jinterface: OtpErlang.jar is not there (Debian: erlang-jinterface)"}
      path -> {:ok, path}
    end
  end

  defp jar do
    path = List.to_string(:tame_labs_native.path(~c"tame_echo_node.jar"))

    if File.exists?(path),
      do: {:ok, path},
      else: {:skip, "tame_echo_node.jar is not built: it needs a JDK and erlang-jinterface"}
  end

  @impl true
  defdelegate echo(state, term), to: NodeProgram

  @impl true
  defdelegate close(state), to: NodeProgram
end
