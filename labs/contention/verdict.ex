defmodule Tame.Contention.Verdict do
  @moduledoc """
  How bad a wait is, in the talk's three colours, and how a cell of its tables is written.

  Green: nobody waited for longer than 100 ms. Yellow: somebody did. Red: somebody waited for a second or more, which a
  process that does something each second misses.
  """

  alias Tame.Duration

  @type level :: :green | :yellow | :red | :none

  @yellow_us 100_000
  @red_us 1_000_000

  # What stands behind a wait where there is no colour.
  @signs %{green: "", yellow: "~", red: "!"}

  @meanings [
    {:green, "nobody waited for longer than 100 ms"},
    {:yellow, "somebody waited for longer than 100 ms"},
    {:red, "somebody waited for a second or more"}
  ]

  @doc "The levels with what they mean, and the sign of each."
  @spec meanings() :: [{level(), sign :: String.t(), String.t()}]
  def meanings, do: for({level, text} <- @meanings, do: {level, @signs[level], text})

  @doc """
  The level of a wait in µs.

      iex> Enum.map([nil, 5000.0, 100_000, 999_999.9, 1_000_000], &Tame.Contention.Verdict.level/1)
      [:none, :green, :yellow, :yellow, :red]
  """
  @spec level(nil | number()) :: level()
  def level(nil), do: :none
  def level(us) when us < @yellow_us, do: :green
  def level(us) when us < @red_us, do: :yellow
  def level(_us), do: :red

  # That of its neighbours, and `:none` where it was not measured. The wait of dirty work has a level of its own.
  defp cell_level(cell), do: level(cell.neighbour_max_us)

  @doc "The worse of a cell's two levels."
  @spec worse_level(map()) :: level()
  def worse_level(cell) do
    levels = [cell_level(cell), dirty_level(cell)]
    Enum.find([:red, :yellow, :green], :none, &(&1 in levels))
  end

  defp dirty_level(cell), do: level(cell.dirty_cpu_wait_max_us)

  @doc """
  A cell as the tables show it: how long a neighbour got no CPU, with a plus sign when that is missed seconds; then, where
  dirty work waited for longer than 100 ms, how long; `…` when the flood was stopped at its limit.

      iex> cell = %{status: "timeout", neighbour_max_us: 2_140_000.0, dirty_cpu_wait_max_us: 310_000.0}
      iex> Tame.Contention.Verdict.cell_text(cell)
      "+2.1s! dirty 310ms~ …"
  """
  @spec cell_text(map()) :: String.t()
  def cell_text(%{tried?: false}), do: "not run"
  def cell_text(%{neighbour_max_us: nil} = cell), do: cell.status

  def cell_text(cell) do
    [neighbour_text(cell), dirty_text(cell), if(cell.status == "timeout", do: "…")]
    |> Enum.reject(&is_nil/1)
    |> Enum.join(" ")
  end

  defp neighbour_text(cell) do
    plus = if cell_level(cell) == :red, do: "+", else: ""
    plus <> Duration.short(cell.neighbour_max_us) <> @signs[cell_level(cell)]
  end

  defp dirty_text(cell) do
    level = dirty_level(cell)

    if level in [:yellow, :red],
      do: "dirty #{Duration.short(cell.dirty_cpu_wait_max_us)}#{@signs[level]}"
  end

  @doc """
  A wait in a sentence.

      iex> Tame.Contention.Verdict.time(12_400.0)
      "12 ms"
  """
  @spec time(nil | number()) :: String.t()
  def time(us), do: us |> Duration.short() |> String.replace(~r/(?=m?s$)/, " ", global: false)
end
