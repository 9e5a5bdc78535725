defmodule Tame.Isolation.There do
  @moduledoc false
  # A VM of its own in which one module is isolated: what happens to that VM and its hosts is nobody else's.

  alias Tame.Peer

  @type call :: (module(), atom(), [term()] -> term())

  @doc "Isolates the module there, with tame's own defaults, and gives `fun` what calls a function there."
  @spec run(module(), pos_integer(), (call() -> value)) :: {:ok, value} | {:error, String.t()}
        when value: term()
  def run(module, within_ms, fun) do
    with {:ok, peer} <- Peer.start(Peer.code_path()) do
      call = fn module, function, args -> Peer.call(peer, module, function, args, within_ms) end

      try do
        # The reports of hosts that crash would come out here, among the lab's own words.
        :ok = call.(:logger, :set_primary_config, [:level, :none])
        {:ok, _} = call.(:application, :ensure_all_started, [:tame])

        case call.(:tame, :isolate, [module]) do
          :ok -> {:ok, fun.(call)}
          {:error, {_, sentence}} -> {:error, to_string(sentence)}
        end
      catch
        :exit, {:timeout, _} -> {:error, "did not end within #{div(within_ms, 1000)} s"}
        :exit, reason -> {:error, "the VM that was measured ended: #{inspect(reason, limit: 5)}"}
        :error, reason -> {:error, "failed there: #{inspect(reason, limit: 5)}"}
      after
        Peer.stop(peer)
      end
    end
  end

  @doc "What the system says that the VM there holds."
  @spec rss_bytes(call()) :: non_neg_integer()
  def rss_bytes(call) do
    os_pid = :os |> call.(:getpid, []) |> List.to_integer()
    :tame_os_process.rss_bytes(os_pid)
  end
end
