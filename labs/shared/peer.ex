defmodule Tame.Peer do
  @moduledoc false
  # The node that a lab floods or calls: a VM of its own, reached through its standard input and output, so that
  # neither distribution nor epmd is needed.
  #
  # A starved VM does not notice that its standard input is closed. So each has a guard beside it, a shell that waits
  # on a pipe of ours and kills the VM when that closes: when the peer is stopped, when its owner dies, and when this
  # VM ends in any way. Above it is a warden (tame_warden), which ends after it has killed what the VM started and left.

  @enforce_keys [:pid, :os_pid, :guard]
  defstruct [:pid, :os_pid, :guard]

  @type t :: %__MODULE__{pid: pid(), os_pid: String.t(), guard: port()}

  @guard ~S(read -r goodbye || kill -KILL "$0" 2>/dev/null)

  # How long a VM may take to start on a machine that is busy.
  @start_ms 20_000

  # The exit status of timeout(1) when the time is over.
  @timed_out 124

  @doc "Emulator flags by which threads without work sleep at once."
  @spec no_busy_wait() :: [String.t()]
  def no_busy_wait, do: ~w(+sbwt none +sbwtdcpu none +sbwtdio none)

  @doc """
  Flags by which a peer finds the code that this VM finds; without them it has tame's and the labs' alone. OTP's own
  folders are not among them: each VM has those, and would look for each module in all that come before.
  """
  @spec code_path([Path.t()]) :: [String.t()]
  def code_path(more \\ []) do
    otp = to_string(:code.lib_dir()) <> "/"

    for path <- more ++ :code.get_path(),
        path = to_string(path),
        not String.starts_with?(path, otp),
        flag <- ["-pa", path],
        do: flag
  end

  @doc """
  This VM's own emulator flags, from its command line (proc(5)): a peer with these is like it.

      iex> Tame.Peer.own_flags({:ok, Enum.join(~w(/usr/bin/beam.smp -sbwt none -S 2:2 -- -root /usr), <<0>>)})
      ["+sbwt", "none", "+S", "2:2"]
  """
  @spec own_flags({:ok, String.t()} | {:error, term()}) :: [String.t()]
  def own_flags(cmdline \\ File.read("/proc/self/cmdline"))

  def own_flags({:ok, text}) do
    for word <- text |> String.split(<<0>>) |> Enum.take_while(&(&1 != "--")) |> Enum.drop(1),
        do: String.replace_prefix(word, "-", "+")
  end

  def own_flags({:error, _}), do: []

  @doc "Whether a VM starts with these flags; if not, a line that names them and says why."
  @spec check([String.t()]) :: :ok | {:error, String.t()}
  def check(flags) do
    args = ["#{div(@start_ms, 1000)}", erl()] ++ flags ++ ~w(-noinput -s erlang halt)

    with {:error, why} <- started(args) do
      {:error, "the peer node does not start with #{inspect(Enum.join(flags, " "))}: #{why}"}
    end
  end

  defp started(args) do
    case System.cmd(System.find_executable("timeout") || "timeout", args, stderr_to_stdout: true) do
      {_, 0} -> :ok
      {_, @timed_out} -> {:error, "does not end within #{div(@start_ms, 1000)} s"}
      {output, status} -> {:error, first_line(output) || "exit status #{status}"}
    end
  end

  @doc """
  Starts a peer. It ends with `stop/1` or with the process that called this, and all that it started with it.
  `status_file`, if given, holds its exit status once it has ended, as a shell has it; its standard error is lost then.
  `env` is what its environment has besides.
  """
  @spec start([String.t()], Path.t() | nil, [{charlist(), charlist()}]) ::
          {:ok, t()} | {:error, String.t()}
  def start(flags, status_file \\ nil, env \\ []) do
    args = code_paths() ++ ["-start_epmd", "false" | flags]

    options = %{
      connection: :standard_io,
      exec: exec(status_file),
      args: Enum.map(args, &String.to_charlist/1),
      env: env,
      wait_boot: @start_ms
    }

    # Not linked: a peer that we kill says so by an exit signal.
    case :peer.start(options) do
      {:ok, pid, _node} -> guarded(pid)
      {:error, reason} -> {:error, "the peer node does not start: #{inspect(reason)}"}
    end
  catch
    _kind, reason -> {:error, "the peer node does not start: #{inspect(reason, limit: 10)}"}
  end

  @doc "Calls a function there and waits for its value."
  @spec call(t(), module(), atom(), [term()], pos_integer()) :: term()
  def call(%__MODULE__{pid: pid}, module, function, args, timeout_ms \\ @start_ms) do
    :peer.call(pid, module, function, args, timeout_ms)
  end

  @doc "Calls a function there without waiting."
  @spec cast(t(), module(), atom(), [term()]) :: :ok
  def cast(%__MODULE__{pid: pid}, module, function, args) do
    :peer.cast(pid, module, function, args)
  end

  @doc "Memory that the VM has in use, by the operating system's count, in bytes; 0 when it is gone."
  @spec memory_bytes(t()) :: non_neg_integer()
  def memory_bytes(%__MODULE__{os_pid: os_pid}) do
    with {:ok, status} <- File.read("/proc/#{os_pid}/status"),
         [_, kb] <- Regex.run(~r/^VmRSS:\s*(\d+) kB$/m, status) do
      1024 * String.to_integer(kb)
    else
      _ -> 0
    end
  end

  @doc "Kills the VM, and waits until it has ended, with all processes that it started."
  @spec stop(t()) :: :ok
  def stop(%__MODULE__{pid: pid, guard: guard}) do
    monitor = Process.monitor(pid)
    if Port.info(guard), do: Port.close(guard)

    # The port of the warden closes when that ends, and the peer's process ends by that.
    receive do
      {:DOWN, ^monitor, :process, ^pid, _} -> :ok
    after
      @start_ms -> Process.exit(pid, :kill) && :ok
    end
  end

  defp guarded(pid) do
    # It answers at once, as nothing runs there yet.
    os_pid = pid |> :peer.call(:os, :getpid, []) |> List.to_string()

    guard = Port.open({:spawn_executable, "/bin/sh"}, [:binary, args: ["-c", @guard, os_pid]])

    {:ok, %__MODULE__{pid: pid, os_pid: os_pid, guard: guard}}
  end

  defp exec(status_file) do
    {:tame_labs_native.path(~c"tame_warden"), Enum.map(program(status_file), &String.to_charlist/1)}
  end

  defp program(nil), do: [erl()]

  # peer does not tell how a VM has ended; its shell knows. The port closes after the file is there.
  defp program(file) do
    script = ~S(exec 2>/dev/null; file="$1"; shift; "$@"; echo $? >"$file")
    ["/bin/sh", "-c", script, "sh", file, erl()]
  end

  defp erl, do: Path.join([:code.root_dir(), "bin", "erl"])

  # What jobs need there: the runtime, and the labs' own modules and natives.
  defp code_paths do
    Enum.flat_map([:tame, __MODULE__], &["-pa", &1 |> :code.which() |> Path.dirname()])
  end

  defp first_line(text) do
    text |> String.split("\n", trim: true) |> Enum.find(&(String.trim(&1) != ""))
  end
end
