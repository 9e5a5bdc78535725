defmodule Tame.Charge do
  @moduledoc """
  Charged ÷ used: the reductions that a process was charged against those that its time on normal schedulers is
  worth. 1 is honest, 0 is free of charge, more than 1 is generous. Pure.
  """

  # What the VM counts for a time slice of one millisecond.
  @reductions_per_ms 4000

  @doc """
  The ratio of reductions charged for `used_ns` of normal schedulers; nil where nothing was used.

      iex> Tame.Charge.ratio(2000, 1_000_000)
      0.5
  """
  @spec ratio(non_neg_integer(), integer()) :: nil | float()
  def ratio(_reductions, used_ns) when used_ns <= 0, do: nil

  def ratio(reductions, used_ns) do
    reductions / @reductions_per_ms / (used_ns / 1_000_000)
  end

  @doc """
  The ratio where it can be told: nil where less than `least_ns` were used, because the instruments are a visible
  part of that, and where more was used on dirty schedulers, because the VM keeps one account for both.

      iex> Tame.Charge.ratio(4000, 1_000_000, 2_000_000, 100_000)
      nil
  """
  @spec ratio(non_neg_integer(), integer(), non_neg_integer(), non_neg_integer()) :: nil | float()
  def ratio(reductions, used_ns, dirty_ns, least_ns) do
    if used_ns >= least_ns and used_ns > dirty_ns, do: ratio(reductions, used_ns)
  end
end
