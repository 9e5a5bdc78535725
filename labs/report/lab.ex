defmodule Tame.Report.Lab do
  @moduledoc """
  What a lab does for the report. Each has a module for it beside its section; `mix tame.report` lists them.

  What a lab measured goes into the report's JSON, and its section is made from what is read there again: so a saved
  report gives the same page, and two of them can be compared.
  """

  alias Tame.Report.{Section, Shape}

  @typedoc """
  What `mix tame.report` was asked for: the payload of a call, calls of each method, the size of a large job; as `:run`
  the `:command` and `:progress` that every lab takes.
  """
  @type options :: %{
          bytes: non_neg_integer(),
          iterations: pos_integer(),
          job_bytes: pos_integer(),
          run: keyword()
        }

  @typedoc "What the lab measured; its `:system` and `:warnings` are in every lab's."
  @type result :: map()

  @typedoc "A result as maps, lists, texts and numbers, as `Tame.Report.Saved` reads it."
  @type saved :: map()

  @typedoc "A time that can be compared with that of another run: of what, which one, in µs."
  @type figure :: {row :: String.t(), metric :: String.t(), us :: number()}

  @doc "One word, for `--only` and JSON."
  @callback name() :: String.t()

  @doc """
  Whether what it measures is in this project (default: yes). One that is not here is measured only when `--only` names
  it, and then `prepare/1` says what is missing.
  """
  @callback here?() :: boolean()

  @optional_callbacks here?: 0

  @doc "Refuses what can be refused before any lab runs, and returns what measures."
  @callback prepare(options()) :: {:ok, (() -> result())} | {:error, String.t()}

  @doc "The result for a terminal."
  @callback text(result()) :: iodata()

  @doc "Whether all went well that could be tried."
  @callback ok?(result()) :: boolean()

  @doc "What of a result is saved: all that its section and `figures/1` need, but for system and warnings."
  @callback to_save(result()) :: saved()

  @doc """
  The shape of what is saved, but for the warnings: all that `section/1` and `figures/1` read. A file that has another one
  is refused with the place in it.
  """
  @callback shape() :: Shape.t()

  @doc "The section; `saved` has the lab's own `:warnings`."
  @callback section(saved()) :: Section.t()

  @doc "What is compared between two runs."
  @callback figures(saved()) :: [figure()]
end
