defmodule Tame.OtherLoadScenarios do
  @moduledoc "What is counted as a VM's own, in a VM of its own: beside others' the processes of their tests come and go."

  alias Tame.OtherLoad

  @doc """
  Readings at first, after work of its own and after an OS process that has worked, and what others took, in per cent.
  How long the work takes is a matter of the machine: it ends when the counter has seen five ticks of it, or never does.
  """
  def readings do
    first = OtherLoad.start()
    true = Tame.Await.until(fn -> work() && OtherLoad.start().own >= first.own + 5 end, 20_000)
    vm = OtherLoad.start()
    {"", 0} = System.cmd("sh", ["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"])
    {first, vm, OtherLoad.start(), OtherLoad.percent(first)}
  end

  defp work,
    do: Enum.sum(1..1_000_000) > 0 and :lists.seq(1, 300_000) |> Enum.shuffle() |> is_list()
end
