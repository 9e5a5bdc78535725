defmodule Tame.Test.Growth do
  @moduledoc false
  # How much longer more work takes than less, where the machine may be busy: both take turns, and the least times count.

  @rounds 15

  # The ratio. It is measured again until it is below that number, for some rounds: what always takes longer never is.
  def ratio(less, more, below), do: ratio(less, more, below, nil, nil, @rounds)

  defp ratio(less, more, below, least_less, least_more, rounds) do
    # An atom is greater than any number.
    least_less = min(least_less, us(less))
    least_more = min(least_more, us(more))
    ratio = least_more / least_less

    if ratio < below or rounds == 1,
      do: ratio,
      else: ratio(less, more, below, least_less, least_more, rounds - 1)
  end

  defp us(fun), do: fun |> :timer.tc() |> elem(0) |> max(1)
end
