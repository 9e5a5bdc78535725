defmodule Tame.Load.Verdict do
  @moduledoc """
  What cells come to, in words that a talk would use, each written from the data. Pure.
  """

  alias Tame.Duration

  # A page that is answered within a tenth of a second seems to be there at once, and one that takes a second is waited for
  # (Nielsen, Usability Engineering, 1993).
  @alive_us 100_000
  @dead_us 1_000_000

  @type level :: :alive | :slow | :dead

  @doc """
  How hello fared beside jobs: `:dead` when its p99 is a second or more.

      iex> Enum.map([%{hello_p99_us: 9.0e3}, %{hello_p99_us: 2.0e5}, %{hello_p99_us: 3.0e6}], &Tame.Load.Verdict.level/1)
      [:alive, :slow, :dead]
  """
  @spec level(map()) :: level()
  def level(%{hello_p99_us: us}) when us == nil or us >= @dead_us, do: :dead
  def level(%{hello_p99_us: us}) when us <= @alive_us, do: :alive
  def level(_cell), do: :slow

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
  defp time(%{hello_p99_us: us}), do: Duration.measured(us)

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
