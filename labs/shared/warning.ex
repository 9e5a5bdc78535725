defmodule Tame.Warning do
  @moduledoc """
  Something a reader of a report must know before believing it: an id for programs and tests, one
  sentence with advice for people.
  """

  @enforce_keys [:id, :text]
  defstruct [:id, :text]

  @type t :: %__MODULE__{id: atom(), text: String.t()}

  @doc """
  The warnings that hold, out of `{holds?, id, text}`; the text is a function, because its words
  often exist only when the warning holds.
  """
  @spec select([{boolean(), atom(), (() -> String.t())}]) :: [t()]
  def select(candidates) do
    for {true, id, text} <- candidates, do: %__MODULE__{id: id, text: text.()}
  end

  @doc "The warnings as lines for a terminal, after an empty one; nothing where there are none."
  @spec text([t()]) :: iodata()
  def text([]), do: []
  def text(warnings), do: [?\n | Enum.map(warnings, &["warning: ", &1.text, ?\n])]

  @doc "The warnings as JSON has them."
  @spec json([t()]) :: [keyword()]
  def json(warnings), do: for(warning <- warnings, do: [id: warning.id, text: warning.text])
end
