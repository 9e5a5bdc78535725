defmodule Tame.Result do
  @moduledoc """
  What the results of all tools have in common, as text and as JSON: the tool, the machine, the warnings. Pure.
  """

  alias Tame.{JSON, SystemInfo, Warning}

  @typedoc "A result, or what of one a tool's JSON begins with. A tool without warnings has no such key."
  @type t :: %{
          required(:tool) => String.t(),
          required(:format) => pos_integer(),
          required(:system) => SystemInfo.t(),
          optional(:warnings) => [Warning.t()],
          optional(term()) => term()
        }

  @doc "The machine block, what the lab has to say, the warnings."
  @spec text(SystemInfo.t(), iodata(), [Warning.t()]) :: iodata()
  def text(system, body, warnings),
    do: [SystemInfo.text(system), ?\n, body, Warning.text(warnings)]

  @doc "A line of JSON: `tool`, `format`, `system`, `warnings`, then `fields`."
  @spec json(t(), keyword()) :: iodata()
  def json(result, fields) do
    head = [tool: result.tool, format: result.format, system: result.system]

    warnings =
      for {:warnings, warnings} <- Map.to_list(result), do: {:warnings, Warning.json(warnings)}

    [JSON.encode(head ++ warnings ++ fields), ?\n]
  end
end
