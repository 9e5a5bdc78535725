defmodule Tame.Reductions.Variants do
  @moduledoc """
  The one place where the variants of the reductions lab are registered.

  A variant is data: an `:id`, the `:mfa` as module and function of two binaries of equal size that
  returns their exclusive or, and in words what the variant is. Add your own by

      config :tame_labs, reductions_variants: [%{id: "mine", mfa: {:my_exor, :exor}, about: "my NIF"}]
  """

  @type variant :: %{
          required(:id) => String.t(),
          required(:mfa) => {module(), atom()},
          optional(:about) => String.t()
        }

  @builtin [
    %{id: "crypto_exor", mfa: {:crypto, :exor}, about: "OTP's own, cut in Erlang"},
    %{id: "exor", mfa: {:tame_exor, :exor}, about: "auto: decides while it runs"},
    %{id: "exor_inline", mfa: {:tame_exor, :exor_inline}, about: "in one go"},
    %{id: "exor_chunks", mfa: {:tame_exor, :exor_chunks}, about: "4 MiB a call, cut in Erlang"},
    %{id: "exor_yielding", mfa: {:tame_exor, :exor_yielding}, about: "in slices"},
    %{id: "exor_dirty", mfa: {:tame_exor, :exor_dirty}, about: "in one go, dirty CPU"},
    %{
      id: "exor_yielding_dirty",
      mfa: {:tame_exor, :exor_yielding_dirty},
      about: "in slices, dirty CPU"
    },
    %{id: "exor_pool", mfa: {:tame_exor, :exor_pool}, about: "the library's own threads"},
    %{
      id: "exor_classic",
      mfa: {:tame_exor_classic, :exor_classic},
      about: "by hand: the classic yielding form"
    },
    %{id: "exor_loop", mfa: {:tame_exor_classic, :exor_loop}, about: "by hand: one uncut loop"}
  ]

  @doc "The variants that come with tame."
  @spec builtin() :: [variant()]
  def builtin, do: @builtin

  @doc "All variants, the built-in ones first, in the order in which they take their turns."
  @spec all() :: [variant()]
  def all, do: @builtin ++ Application.get_env(:tame_labs, :reductions_variants, [])

  @doc """
  The variants with the given ids, in the order of `all/0`; `{:error, message}` names the first id
  that is none.

      iex> {:ok, variants} = Tame.Reductions.Variants.fetch(["exor_loop", "crypto_exor"])
      iex> Enum.map(variants, & &1.id)
      ["crypto_exor", "exor_loop"]
  """
  @spec fetch([String.t()]) :: {:ok, [variant()]} | {:error, String.t()}
  def fetch(ids) do
    known = Enum.map(all(), & &1.id)

    case Enum.find(ids, &(&1 not in known)) do
      nil ->
        {:ok, Enum.filter(all(), &(&1.id in ids))}

      unknown ->
        {:error, "unknown variant #{inspect(unknown)}, expected some of: #{Enum.join(known, ", ")}"}
    end
  end

  @doc """
  Whether a variant is there to be called; if not, why.

      iex> Tame.Reductions.Variants.present(%{id: "x", mfa: {:no_such_module, :exor}})
      {:error, "there is no module no_such_module"}
  """
  @spec present(variant()) :: :ok | {:error, String.t()}
  def present(%{mfa: {module, function}}) do
    case Code.ensure_loaded(module) do
      {:module, ^module} ->
        if function_exported?(module, function, 2),
          do: :ok,
          else: {:error, "there is no function #{name(module)}:#{function}/2"}

      {:error, :nofile} ->
        {:error, "there is no module #{name(module)}"}

      {:error, :on_load_failure} ->
        {:error, "the NIF library of #{name(module)} does not load"}

      {:error, reason} ->
        {:error, "the module #{name(module)} does not load: #{inspect(reason)}"}
    end
  end

  defp name(module), do: module |> inspect() |> String.trim_leading(":")
end
