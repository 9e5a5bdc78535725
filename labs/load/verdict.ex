defmodule Tame.Load.Verdict do
  @moduledoc """
  What cells come to, in words that a talk would use, each written from the data. Pure.
  """

  alias Tame.Duration

  # A page that is answered within a tenth of a second seems to be there at once, and one that takes a second is waited for
  # (Nielsen, Usability Engineering, 1993).
  @alive_us 100_000
  @dead_us 1_000_000

  # A p99 lets one of a hundred be late, so one of a hundred may have no answer; who has none of ten has a broken page.
  @lost 0.01
  @broken 0.1

  @type level :: :alive | :slow | :dead

  @doc """
  How hello fared beside jobs: `:dead` when its p99 is a second or more, or more than a tenth had no answer, and not
  `:alive` when more than 1 % had none.

      iex> Enum.map([%{hello_p99_us: 9.0e3}, %{hello_p99_us: 2.0e5}, %{hello_p99_us: 3.0e6}], &Tame.Load.Verdict.level/1)
      [:alive, :slow, :dead]
  """
  @spec level(map()) :: level()
  def level(%{hello_p99_us: us} = cell) do
    cond do
      us == nil or us >= @dead_us or lost(cell) > @broken -> :dead
      us <= @alive_us and not lost?(cell) -> :alive
      true -> :slow
    end
  end

  @doc """
  The share of hello that was refused or failed, from 0 to 1.

      iex> Tame.Load.Verdict.lost(%{hello_planned: 1000, hello_refused: 20, hello_failed: 5})
      0.025
  """
  @spec lost(map()) :: float()
  def lost(%{hello_planned: planned, hello_refused: refused, hello_failed: failed})
      when is_integer(planned) and planned > 0 and is_integer(refused) and is_integer(failed),
      do: (refused + failed) / planned

  # One that was not measured, or was saved without these counts.
  def lost(_cell), do: 0.0

  @doc "Whether that is more than a p99 may leave out."
  @spec lost?(map()) :: boolean()
  def lost?(cell), do: lost(cell) > @lost

  @doc "Where `lost?/1`, the share in words after a comma; else nothing."
  @spec lost_text(map()) :: String.t()
  def lost_text(cell) do
    if lost?(cell), do: ", #{max(1, round(100 * lost(cell)))} % refused or failed", else: ""
  end

  @doc "The longest job of up to 10 ms that was measured, whose cells are compared in words and pictures."
  @spec shown_us([map()]) :: nil | pos_integer()
  def shown_us(cells) do
    jobs = for %{job_us: us, status: "ok"} <- cells, us > 0, do: us
    jobs |> Enum.filter(&(&1 <= 10_000)) |> Enum.max(fn -> Enum.min(jobs, fn -> nil end) end)
  end

  @doc """
  The talk's claim, tried here: does the yielding form keep hello alive where the plain NIF kills it? One sentence for each length
  of a job that both were measured with.
  """
  @spec claim(map()) :: [String.t()]
  def claim(%{cells: cells, load_percent: percent}) do
    for us <- cells |> Enum.map(& &1.job_us) |> Enum.uniq(),
        us > 0,
        inline = find(cells, "inline", us),
        yielding = find(cells, "yielding", us) do
      "With jobs of #{Duration.text(us)} at #{percent} % of what the cores can do, hello's p99 is #{time(inline)} beside the plain NIF and " <>
        "#{time(yielding)} beside its yielding form: #{compared(level(inline), level(yielding))}"
    end
  end

  defp find(cells, placement, us) do
    Enum.find(cells, &(&1.placement == placement and &1.job_us == us and &1.status == "ok"))
  end

  defp time(%{hello_p99_us: nil}), do: "unknown"

  defp time(%{hello_p99_us: us} = cell) do
    case lost_text(cell) do
      "" -> Duration.measured(us)
      ", " <> lost -> "#{Duration.measured(us)} (#{lost})"
    end
  end

  defp compared(:dead, :alive),
    do: "the yielding form keeps hello alive where the plain NIF kills it."

  defp compared(:dead, :slow),
    do: "the yielding form slows hello down where the plain NIF kills it."

  defp compared(:slow, :alive),
    do: "the yielding form keeps hello alive where the plain NIF slows it down."

  defp compared(level, level), do: "both #{same(level)}."

  defp compared(plain, yielding),
    do: "the plain NIF #{does(plain)}, and the yielding form #{does(yielding)}."

  defp same(:alive), do: "keep hello alive"
  defp same(:slow), do: "slow hello down"
  defp same(:dead), do: "kill hello"

  defp does(:alive), do: "keeps hello alive"
  defp does(:slow), do: "slows hello down"
  defp does(:dead), do: "kills hello"
end
