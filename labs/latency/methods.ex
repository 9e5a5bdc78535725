defmodule Tame.Latency.Methods do
  @moduledoc """
  The one place where the latency lab's methods are registered.

  Add your own by `config :tame_labs, latency_methods: [MyApp.EchoMethod]`; each is a
  `Tame.Latency.Method`.
  """

  alias Tame.Latency.Methods

  @builtin [
    Methods.BeamCall,
    Methods.BeamProcess,
    Methods.NIFNormal,
    Methods.NIFYielding,
    Methods.NIFDirtyCPU,
    Methods.NIFDirtyIO,
    Methods.NIFYieldingDirty,
    Methods.NIFThreadNew,
    Methods.NIFThreadQueue,
    Methods.DriverCall,
    Methods.DriverControl,
    Methods.DriverOutputv,
    Methods.DriverAsync,
    Methods.Isolated,
    Methods.Port,
    Methods.SocketUnix,
    Methods.SocketTCP,
    Methods.CNode,
    Methods.JavaNode
  ]

  # By packages of tame's tree, and beside them. Measured when they are named.
  @native_io [
    Methods.SocketOTP,
    Methods.SocketTameTCP,
    Methods.NngNIF,
    Methods.NngDriver
  ]

  @doc "The methods that come with tame."
  @spec builtin() :: [module()]
  def builtin, do: @builtin

  @doc "Those that `fetch/1` knows besides: OTP's `socket`, and packages of tame's tree (`libraries/`), where they are built."
  @spec native_io() :: [module()]
  def native_io, do: @native_io

  @doc "All methods, the built-in ones first, in the order in which they take their turns."
  @spec all() :: [module()]
  def all, do: @builtin ++ Application.get_env(:tame_labs, :latency_methods, [])

  @doc "The ids of all methods, in the same order."
  @spec ids() :: [atom()]
  def ids, do: Enum.map(all(), & &1.describe().id)

  @doc """
  The methods with the given ids, in the order of `all/0`, then of `native_io/0`; `{:error, message}` names the first id
  that is none.

      iex> Tame.Latency.Methods.fetch(["nif_normal", "beam_call"])
      {:ok, [Tame.Latency.Methods.BeamCall, Tame.Latency.Methods.NIFNormal]}
  """
  @spec fetch([String.t()]) :: {:ok, [module()]} | {:error, String.t()}
  def fetch(ids) do
    methods = all() ++ @native_io
    known = Enum.map(methods, &id/1)

    case Enum.find(ids, &(&1 not in known)) do
      nil ->
        {:ok, Enum.filter(methods, &(id(&1) in ids))}

      unknown ->
        {:error, "unknown method #{inspect(unknown)}, expected some of: #{Enum.join(known, ", ")}"}
    end
  end

  defp id(method), do: Atom.to_string(method.describe().id)
end
