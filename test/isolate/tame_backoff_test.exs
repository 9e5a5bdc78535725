defmodule Tame.BackoffTest do
  # How long a host that crashes stays down, without a host.
  use ExUnit.Case, async: true

  @options %{backoff_ms: {10, 70}, intensity: {3, 1000}}

  # The pause after each of these crashes, one ms apart.
  defp delays(crashes, options \\ @options) do
    {delays, _} =
      Enum.map_reduce(Enum.with_index(crashes), :tame_backoff.new(), fn {crash, at_ms}, before ->
        later = :tame_backoff.crashed(crash, at_ms, options, before)
        {:tame_backoff.delay_ms(options, later), later}
      end)

    delays
  end

  test "nothing after the first crash in a row, then twice as long each time, up to the ceiling" do
    assert delays(List.duplicate({:up, 0}, 6)) == [0, 10, 20, 40, 70, 70]
    assert List.last(delays(List.duplicate({:up, 0}, 1000))) == 70
  end

  test "a crash after a second up is a first one" do
    assert delays([{:up, 0}, {:up, 999}, {:up, 1000}, {:up, 0}]) == [0, 10, 0, 10]
  end

  test "a host that does not start waits at least 20 ms, but for the first time" do
    options = %{@options | backoff_ms: {0, 0}}
    assert delays([:starting, :starting, {:up, 0}, :starting], options) == [0, 20, 0, 20]
  end

  test "more crashes than the intensity allows, within its time, are a failure" do
    failed = fn times_ms, options ->
      Enum.reduce(times_ms, :tame_backoff.new(), fn at_ms, backoff ->
        :tame_backoff.crashed({:up, 5}, at_ms, options, backoff)
      end)
      |> then(&:tame_backoff.has_failed(options, &1))
    end

    refute failed.([0, 1, 2], @options)
    assert failed.([0, 1, 2, 999], @options)
    refute failed.([0, 1, 2, 1000], @options)
    refute failed.(Enum.to_list(0..100), %{@options | intensity: :infinity})
    assert failed.([0], %{@options | intensity: {0, 1}})
    assert :tame_backoff.in_row(:tame_backoff.new()) == 0
  end
end
