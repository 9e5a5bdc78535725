defmodule Tame.OtherLoad do
  @moduledoc """
  How much of the machine's CPU time others took while a lab ran.

  `/proc/stat` says for how long the CPUs were busy, time that the hypervisor gave to others ("steal") included. What is
  not that of this VM, nor of the processes that it started, is that of others.
  """

  alias Tame.Proc

  @typedoc "A reading, in ticks of the kernel: all time, busy time, and that of our own processes; nil where there is no /proc."
  @type reading :: nil | %{all: integer(), busy: integer(), own: integer()}

  # A tick is a hundredth of a second; in fewer than these, of all CPUs together, a share is not to be read.
  @enough_ticks 20

  @doc "Reads where to count from."
  @spec start() :: reading()
  def start do
    with {:ok, text} <- File.read("/proc/stat"),
         do: Map.put(cpus(text), :own, own(processes(), System.pid())),
         else: (_ -> nil)
  end

  @doc "The share of all CPU time since then that others took, in per cent; nil where that is not known."
  @spec percent(reading()) :: nil | non_neg_integer()
  def percent(before), do: share(before, start())

  @doc """
  The share between two readings.

      iex> Tame.OtherLoad.share(%{all: 0, busy: 0, own: 0}, %{all: 200, busy: 150, own: 100})
      25
  """
  @spec share(reading(), reading()) :: nil | non_neg_integer()
  def share(before, later) when before == nil or later == nil, do: nil

  def share(before, later) do
    all = later.all - before.all
    others = later.busy - before.busy - (later.own - before.own)
    # The two counts are not made at one moment.
    if all >= @enough_ticks, do: others |> max(0) |> Kernel.*(100) |> Kernel./(all) |> round()
  end

  @doc """
  The first line of `/proc/stat`: user nice system idle iowait irq softirq steal; guests are in user and nice already.

      iex> Tame.OtherLoad.cpus("cpu  110 1 105 1060 20 0 0 4 9 0\\ncpu0 1 2 3\\n")
      %{all: 1300, busy: 220}
  """
  @spec cpus(String.t()) :: %{all: integer(), busy: integer()}
  def cpus(text) do
    ["cpu" | ticks] = text |> String.split("\n") |> hd() |> String.split()
    ticks = ticks |> Enum.take(8) |> Enum.map(&String.to_integer/1)
    all = Enum.sum(ticks)
    %{all: all, busy: all - Enum.at(ticks, 3) - Enum.at(ticks, 4)}
  end

  @doc """
  The time of a process and of all below it. What has ended is in the count of its parent.

      iex> stat = fn parent, ticks, children -> %{parent: parent, ticks: ticks, children_ticks: children} end
      iex> Tame.OtherLoad.own(%{"1" => stat.("0", 900, 0), "2" => stat.("1", 10, 3), "3" => stat.("2", 5, 0)}, "2")
      18
  """
  @spec own(%{String.t() => map()}, String.t()) :: non_neg_integer()
  def own(processes, root) do
    children = Enum.group_by(processes, fn {_, stat} -> stat.parent end, &elem(&1, 0))
    own(processes, children, root)
  end

  defp own(processes, children, id) do
    %{ticks: ticks, children_ticks: ended} = Map.get(processes, id, %{ticks: 0, children_ticks: 0})
    below = for child <- Map.get(children, id, []), do: own(processes, children, child)
    ticks + ended + Enum.sum(below)
  end

  defp processes do
    for id <- File.ls!("/proc"), id =~ ~r/^\d+$/, stat = Proc.stat("/proc/#{id}/stat"), into: %{} do
      {id, stat}
    end
  end
end
