defmodule Tame.Audit do
  @moduledoc """
  Is this NIF well-behaved? Of any NIF, without its source.

  Static: what each library's own table says of its functions, and what it can do (`Tame.Audit.Static`). Dynamic: a function
  called in a VM of its own on inputs of growing size (`Tame.Audit.Dynamic`), and what that comes to (`Tame.Audit.Verdict`).
  `mix tame.audit` is the command.
  """

  alias Tame.Audit.{Dynamic, Library, Static}

  @typedoc "What an audit found. `:failures` are lines on what should have been looked at and could not be."
  @type result :: %{
          system: keyword(),
          libraries: [Library.t()],
          targets: [Dynamic.t()],
          notes: [String.t()],
          failures: [String.t()]
        }

  @doc "Looks at targets without calling anything of them."
  @spec static([Tame.Audit.Target.t()], keyword()) :: {:ok, result()} | {:error, String.t()}
  def static(targets, system) do
    with {:ok, found} <- Static.look(targets) do
      {:ok, Map.merge(found, %{system: system, targets: []})}
    end
  end
end
