defmodule Tame.Audit.Peer do
  @moduledoc false
  # The VM in which an audit calls what it does not trust: a peer with the tool's code path. A call there that hangs
  # or ends the VM is an error in words.

  alias Tame.{Duration, Peer}

  @type t :: %{peer: Peer.t(), status_file: Path.t()}

  @doc "Starts a peer that finds what this VM finds, and what lies in `paths`; with more flags and environment."
  @spec start([Path.t()], [String.t()], [{charlist(), charlist()}]) ::
          {:ok, t()} | {:error, String.t()}
  def start(paths \\ [], more \\ [], env \\ []) do
    file =
      Path.join(
        System.tmp_dir!(),
        "tame_audit_#{System.pid()}_#{System.unique_integer([:positive])}"
      )

    with {:ok, peer} <- Peer.start(flags() ++ more ++ Peer.code_path(paths), file, env) do
      {:ok, %{peer: peer, status_file: file}}
    end
  end

  @doc "Calls a function there. The peer is of no more use after an error, and says the same again once it has ended."
  @spec call(t(), module(), atom(), [term()], pos_integer()) :: {:ok, term()} | {:error, String.t()}
  def call(%{peer: peer} = here, module, function, args, timeout_ms) do
    {:ok, :peer.call(peer.pid, module, function, args, timeout_ms)}
  catch
    :exit, {:timeout, _} ->
      {:error,
       "did not return within #{Duration.text(1000 * timeout_ms)}, and was ended with its VM"}

    _kind, reason ->
      # Whose exit comes first, that of the call or that of the peer, is not given.
      monitor = Process.monitor(peer.pid)

      receive do
        {:DOWN, ^monitor, :process, _, _} ->
          {:error, "ended the VM with #{ending(File.read(here.status_file))}"}
      after
        1000 ->
          true = Process.demonitor(monitor, [:flush])
          {:error, "failed: #{inspect(reason, limit: 8, printable_limit: 200)}"}
      end
  end

  @doc "Ends a peer, whatever it is doing."
  @spec stop(t()) :: :ok
  def stop(%{peer: peer, status_file: file}) do
    :ok = Peer.stop(peer)
    _ = File.rm(file)
    :ok
  end

  @doc """
  How a VM ended, in words, from what its shell wrote.

      iex> Tame.Audit.Peer.ending({:ok, "139\\n"})
      "SIGSEGV"

      iex> Tame.Audit.Peer.ending({:ok, "3\\n"})
      "exit status 3"
  """
  @spec ending({:ok, String.t()} | {:error, term()}) :: String.t()
  def ending({:ok, text}) do
    case Integer.parse(text) do
      {status, _} when status > 128 -> signal(:tame_signal.name(status - 128))
      {status, _} -> "exit status #{status}"
      :error -> "an unknown status"
    end
  end

  def ending({:error, _}), do: "an unknown status"

  # A shell's way to say by which signal a process died.
  defp signal(number) when is_integer(number), do: "signal #{number}"
  defp signal(name), do: name |> Atom.to_string() |> String.upcase()

  # Threads without work sleep, so that CPU time is that of work; and there must be a scheduler beside one that is held.
  defp flags do
    # What goes wrong there is told in our words.
    quiet = ~w(-kernel logger_level none)

    if :erlang.system_info(:schedulers_online) == 1,
      do: ["+S", "2:2" | Peer.no_busy_wait()] ++ quiet,
      else: Peer.no_busy_wait() ++ quiet
  end
end
