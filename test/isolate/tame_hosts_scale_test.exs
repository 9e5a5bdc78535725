defmodule Tame.HostsScaleTest do
  # When a library gets another host or loses one, without hosts.
  use ExUnit.Case, async: true

  @options %{hosts: {1, 3}, idle_ms: 100}
  @idle %{in_line: 0, slots_in_use: 0, resources: 0}
  @busy %{@idle | slots_in_use: 2}
  @crowded %{@busy | in_line: 1}

  # The last step of looks at these hosts, a pid for each, 50 ms apart.
  defp step(looks, options \\ @options) do
    pids = for n <- 1..9, do: :erlang.list_to_pid(~c"<0.#{n}.0>")

    {steps, _} =
      Enum.map_reduce(Enum.with_index(looks), :tame_hosts_scale.new(), fn {states, n}, idle ->
        hosts = Enum.zip(pids, for(state <- states, do: seen(state)))
        :tame_hosts_scale.look(n * 50, hosts, options, idle)
      end)

    case List.last(steps) do
      {:stop, pid} -> {:stop, Enum.find_index(pids, &(&1 == pid))}
      other -> other
    end
  end

  defp seen(%{} = info), do: {:up, info}
  defp seen(state), do: state

  test "one more while callers wait at each host that is up, up to the most" do
    assert step([[@crowded]]) == :start
    assert step([[@crowded, @crowded]]) == :start
    assert step([[@crowded, @crowded, @crowded]]) == :keep
    assert step([[@crowded, @busy]]) == :keep
    assert step([[@crowded, :failed]]) == :start
  end

  test "one at a time, and none while no host is up" do
    assert step([[@crowded, :down]]) == :keep
    assert step([[:down]]) == :keep
    assert step([[:failed]]) == :keep
  end

  test "the newest goes when it has been idle for idle_ms, down to the fewest" do
    two = [@busy, @idle]
    assert step([two, two]) == :keep
    assert step([two, two, two]) == {:stop, 1}
    assert step([[@idle], [@idle], [@idle]]) == :keep
    assert step([[@idle, @busy], [@idle, @busy], [@idle, @busy]]) == :keep
  end

  test "a call or a resource in between begins the idle time again" do
    two = [@busy, @idle]
    held = [@busy, %{@idle | resources: 1}]
    assert step([two, held, two, two]) == :keep
    assert step([two, held, two, two, two]) == {:stop, 1}
    assert step([held, held, held]) == :keep
  end
end
