defmodule Tame.Audit do
  @moduledoc """
  Is this NIF well-behaved? Of any NIF, without its source.

  Static: what each library's own table says of its functions, and what it can do (`Tame.Audit.Static`). Dynamic: a function
  called in a VM of its own on inputs of growing size (`Tame.Audit.Dynamic`), and what that comes to (`Tame.Audit.Verdict`).
  `mix tame.audit` is the command.
  """

  alias Tame.Audit.{Dynamic, Input, Library, Static, Target, Verdict}

  @typedoc "What an audit found. `:failures` are lines on what should have been looked at and could not be."
  @type result :: %{
          system: keyword(),
          libraries: [Library.t()],
          targets: [Dynamic.t()],
          notes: [String.t()],
          failures: [String.t()]
        }

  @typedoc """
  A target with how it is called, if it is a function: `:input`, `:budget_us`, `:limit_ms`, and the largest size as
  `:up_to` bytes.
  """
  @type check :: %{
          required(:target) => Target.t(),
          optional(:input) => Input.t(),
          optional(:budget_us) => pos_integer(),
          optional(:limit_ms) => pos_integer(),
          optional(:up_to) => pos_integer()
        }

  @budget_us 1000
  @limit_ms 10_000

  @doc "Looks at the libraries of all targets, then calls the functions among them, one after the other."
  @spec run([check()], keyword(), (map() -> any())) :: {:ok, result()} | {:error, String.t()}
  def run(checks, system, progress \\ fn _ -> :ok end) do
    with {:ok, found} <- Static.look(Enum.map(checks, & &1.target)) do
      result = Map.merge(found, %{system: system, targets: []})
      {:ok, Enum.reduce(checks, result, &call(&1, &2, progress))}
    end
  end

  defp call(%{target: {:function, mfa}} = check, result, progress) do
    options = %{
      input: check.input,
      budget_us: check[:budget_us] || @budget_us,
      limit_ms: check[:limit_ms] || @limit_ms,
      up_to: check[:up_to],
      dirty: dirty(mfa, result.libraries),
      progress: progress
    }

    case Dynamic.audit(mfa, options) do
      {:ok, target} ->
        %{result | targets: result.targets ++ [target], failures: result.failures ++ ended(target)}

      {:error, why} ->
        %{result | failures: result.failures ++ [why]}
    end
  end

  defp call(_static, result, _progress), do: result

  # What cannot be called is no audit that went well.
  defp ended(target) do
    for verdict <- target.verdicts,
        Verdict.name(verdict) in [:hangs, :crashes],
        do: "#{target.target} #{Verdict.text(verdict)}"
  end

  # A trace cannot tell the two kinds of dirty schedulers apart; the library's table can.
  defp dirty({module, _, _}, libraries) do
    kinds =
      for library <- libraries,
          library.module == Atom.to_string(module),
          kind <- [:dirty_cpu, :dirty_io],
          Library.of_kind(library, kind) != [],
          do: kind

    if :dirty_io in kinds and :dirty_cpu not in kinds, do: :dirty_io, else: :dirty_cpu
  end
end
