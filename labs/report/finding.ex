defmodule Tame.Report.Finding do
  @moduledoc """
  What the first screen says: a question, the answer in a sentence made from the data, and its picture.

  A report has at most one finding with an id, in the order of `ids/0`. Where two sections answer one question, the
  later one does.
  """

  alias Tame.Report.Words

  @type t :: %__MODULE__{
          id: String.t(),
          question: String.t(),
          answer: Words.rich(),
          spec: map() | nil
        }

  @enforce_keys [:id, :question, :answer]
  defstruct [:id, :question, :answer, :spec]

  # By id, in the order in which they are shown.
  @questions [
    {"call", "What does a call cost?"},
    {"job", "What does one large job do to its neighbours?"},
    {"flood", "Who starves in a flood of jobs?"},
    {"load", "What does a server answer while its handlers call native code?"},
    {"isolation", "What does isolation protect from, and what does it cost?"}
  ]

  @doc "A finding with the question of its id."
  @spec new(String.t(), Words.rich(), map() | nil) :: t()
  def new(id, answer, spec) do
    {^id, question} = List.keyfind!(@questions, id, 0)
    %__MODULE__{id: id, question: question, answer: answer, spec: spec}
  end

  @doc "The findings that are shown, in their order."
  @spec shown([t()]) :: [t()]
  def shown(findings) do
    by_id = Map.new(findings, &{&1.id, &1})
    for {id, _} <- @questions, finding = by_id[id], do: finding
  end
end
