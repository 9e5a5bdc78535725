defmodule Tame.PageFaults do
  @moduledoc """
  How many pages the operating system had to find for this VM: the difference between memory that is at hand and
  memory that is fresh. Linux counts them for the process and for each thread; elsewhere nobody does.
  """

  alias Tame.Proc

  @typedoc "Files to read: of the VM, and of one scheduler's thread."
  @type where :: %{vm: Path.t(), scheduler: Path.t()}

  @typedoc "Page faults; nil where they are not counted."
  @type faults :: nil | %{vm: non_neg_integer(), scheduler: non_neg_integer()}

  @doc "Where those of this VM and of a scheduler's thread are read."
  @spec where(pos_integer()) :: nil | where()
  def where(scheduler) do
    case Proc.schedulers("self") do
      %{^scheduler => thread} -> %{vm: "/proc/self/stat", scheduler: thread}
      _ -> nil
    end
  end

  @doc "How many there were so far."
  @spec read(nil | where()) :: faults()
  def read(nil), do: nil
  def read(where), do: Map.new(where, fn {who, path} -> {who, Proc.stat(path).faults} end)

  @doc """
  How many there were between two readings.

      iex> Tame.PageFaults.between(%{vm: 10, scheduler: 5}, %{vm: 110, scheduler: 6})
      %{vm: 100, scheduler: 1}
  """
  @spec between(faults(), faults()) :: faults()
  def between(nil, nil), do: nil
  def between(before, later), do: Map.new(later, fn {who, count} -> {who, count - before[who]} end)
end
