defmodule Tame.Test.Growth do
  @moduledoc false
  # How much longer some work takes than other work that should take as long, where the machine may be busy: both take turns,
  # and the least times count.

  # Enough for a busy machine: of work of some milliseconds a few hundred rounds.
  @most_ms 10_000

  # The ratio. It is measured again until it is below that number, for some time: what always takes longer never is.
  def ratio(one, other, below), do: ratio(one, other, below, nil, nil, now_ms() + @most_ms)

  defp ratio(one, other, below, least_one, least_other, deadline) do
    # An atom is greater than any number.
    least_one = min(least_one, us(one))
    least_other = min(least_other, us(other))
    ratio = least_other / least_one

    if ratio < below or now_ms() > deadline,
      do: ratio,
      else: ratio(one, other, below, least_one, least_other, deadline)
  end

  defp us(fun), do: fun |> :timer.tc() |> elem(0) |> max(1)

  defp now_ms, do: System.monotonic_time(:millisecond)
end
