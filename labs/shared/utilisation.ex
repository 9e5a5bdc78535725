defmodule Tame.Utilisation do
  @moduledoc """
  How busy schedulers were between two readings of `:erlang.statistics(:scheduler_wall_time_all)`. Pure.
  """

  import Bitwise

  @typedoc "A reading: number, active time and total time of each scheduler."
  @type reading :: [{pos_integer(), non_neg_integer(), non_neg_integer()}]

  @type kind :: :normal | :dirty_cpu | :dirty_io

  @kinds [:normal, :dirty_cpu, :dirty_io]

  @doc "Every kind of scheduler, in the order in which the VM numbers them."
  @spec kinds() :: [kind()]
  def kinds, do: @kinds

  @doc """
  The kind of a scheduler by its number: normal ones come first, then dirty CPU, then dirty I/O ones.

      iex> Enum.map(1..5, &Tame.Utilisation.kind(&1, 2, 2))
      [:normal, :normal, :dirty_cpu, :dirty_cpu, :dirty_io]
  """
  @spec kind(pos_integer(), pos_integer(), non_neg_integer()) :: kind()
  def kind(id, normal, _dirty_cpu) when id <= normal, do: :normal
  def kind(id, normal, dirty_cpu) when id <= normal + dirty_cpu, do: :dirty_cpu
  def kind(_id, _normal, _dirty_cpu), do: :dirty_io

  @doc """
  Active and total time of each scheduler between two readings. The counters are 64 bits wide and may have wrapped in
  between; a scheduler that is in one reading only is left out.

      iex> Tame.Utilisation.between([{1, 10, 100}, {2, 0, 100}], [{1, 60, 200}, {2, 25, 200}])
      [{1, 50, 100}, {2, 25, 100}]
  """
  @spec between(reading(), reading()) :: reading()
  def between(before, later) do
    before = Map.new(before, fn {id, active, total} -> {id, {active, total}} end)

    for {id, active, total} <- Enum.sort(later),
        {active_before, total_before} <- List.wrap(before[id]) do
      {id, passed(active_before, active), passed(total_before, total)}
    end
  end

  defp passed(before, later) when later >= before, do: later - before
  defp passed(before, later), do: later - before + (1 <<< 64)
end
