defmodule Tame.HeartbeatTest do
  # One step is one look, so no test here waits: the clock is the count of looks.
  use ExUnit.Case, async: true

  @ping_looks 10

  # Takes a look at each pulse; the actions of each.
  defp looks(beat, pulses) do
    Enum.map_reduce(pulses, beat, fn pulse, beat -> :tame_heartbeat.look(pulse, beat) end)
  end

  defp quiet(count), do: List.duplicate({0, 0, 0}, count)

  test "while calls flow it is asked each five seconds, and lives by its answer alone" do
    pulses = for n <- 1..10_000, do: {n, 0, 0}

    {pings, _} =
      Enum.map_reduce(pulses, :tame_heartbeat.new(1000), fn pulse, beat ->
        case :tame_heartbeat.look(pulse, beat) do
          {[:ping], later} -> {1, :tame_heartbeat.pong(later)}
          {[], later} -> {0, later}
        end
      end)

    assert Enum.sum(pings) == 200
    # Calls are answered, and the control port is dead.
    {actions, _} = looks(:tame_heartbeat.new(1000), Enum.take(pulses, 60))
    assert Enum.concat(actions) == [:ping, kill: :not_answering]
  end

  test "a quiet host is asked once, and again after it has answered" do
    {actions, beat} = looks(:tame_heartbeat.new(5000), quiet(@ping_looks + 5))
    assert Enum.concat(actions) == [:ping]
    assert Enum.find_index(actions, &(&1 == [:ping])) == @ping_looks - 1
    {actions, _} = looks(:tame_heartbeat.pong(beat), quiet(@ping_looks))
    assert Enum.concat(actions) == [:ping]
  end

  for answer_ms <- [100, 500, 5000] do
    test "one that does not answer for #{answer_ms} ms is killed, not a look earlier" do
      answer_looks = div(unquote(answer_ms), :tame_heartbeat.look_ms())

      {actions, beat} =
        looks(:tame_heartbeat.new(unquote(answer_ms)), quiet(@ping_looks + answer_looks - 1))

      assert Enum.concat(actions) == [:ping]
      assert {[{:kill, :not_answering}], _} = :tame_heartbeat.look({0, 0, 0}, beat)
      # A pong in the last moment, and it lives.
      assert {[], _} = :tame_heartbeat.look({0, 0, 0}, :tame_heartbeat.pong(beat))
    end
  end

  test "never, with infinity" do
    {actions, _} = looks(:tame_heartbeat.new(:infinity), quiet(100_000))
    assert Enum.concat(actions) == [:ping]
  end

  test "a worker is asked for at each look at which a call is not taken and none was answered" do
    {[_first | actions], _} =
      looks(:tame_heartbeat.new(:infinity), List.duplicate({7, 500, 0}, 100))

    assert Enum.all?(actions, &(:grow in &1))
    # Not while calls move, nor for ones that have just come, nor where each has its worker.
    for pulses <- [
          for(n <- 1..50, do: {n, 500, 0}),
          List.duplicate({0, 20, 0}, 50),
          List.duplicate({0, 0, 0}, 50)
        ] do
      {actions, _} = looks(:tame_heartbeat.new(:infinity), pulses)
      refute :grow in Enum.concat(actions)
    end
  end

  test "calls that no worker takes and nobody wants, for as long as answer_ms, though pings are answered" do
    beat = :tame_heartbeat.new(1000)

    ends =
      Enum.reduce_while(1..50, beat, fn look, beat ->
        case :tame_heartbeat.look({0, 5000, 2}, beat) do
          {[{:kill, :not_answering}], _} -> {:halt, look}
          {_, later} -> {:cont, :tame_heartbeat.pong(later)}
        end
      end)

    assert ends == 10
  end
end
