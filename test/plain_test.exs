defmodule Tame.PlainTest do
  # The small pure modules whose examples say all there is, and what JSON must escape.
  use ExUnit.Case, async: true
  doctest Tame.JSON
  doctest Tame.TextTable
  doctest Tame.Progress
  doctest Tame.Report.Chart
  doctest Tame.Report.Colours
  doctest Tame.Calibrate.Costs
  doctest Tame.Charge
  doctest Tame.Duration
  doctest Tame.FunctionName
  doctest Tame.Stats
  doctest Tame.Turns
  doctest Tame.OtherLoad
  doctest Tame.PageFaults
  doctest Tame.Proc
  doctest Tame.Peer
  doctest Tame.Utilisation

  test "JSON escapes what may not stand in a string, and < for the page's sake" do
    text = "a\"b\\c\n\t\r\0\x1f</script>ü€"

    assert IO.iodata_to_binary(Tame.JSON.encode(text)) ==
             ~S("a\"b\\c\n\t\r\u0000\u001f\u003c/script>ü€")
  end

  test "JSON sorts the keys of a map, keeps the order of a keyword list, nests both" do
    value = %{"b" => 1, "a" => [z: nil, y: []]}
    assert IO.iodata_to_binary(Tame.JSON.encode(value)) == ~s({"a":{"z":null,"y":[]},"b":1})
  end

  test "JSON refuses what it has no word for" do
    for value <- [{1, 2}, self(), <<255>>] do
      assert_raise ArgumentError, fn -> IO.iodata_to_binary(Tame.JSON.encode(value)) end
    end
  end

  test "progress says which part begins where the output is no terminal, and nothing else" do
    assert ExUnit.CaptureIO.capture_io(:stderr, fn ->
             Tame.Progress.part("measuring latency", false)
             Tame.Progress.printer(false).(%{what: "x", done: 1, total: 2})
             Tame.Progress.clear(false)
           end) == "measuring latency\n"
  end

  test "progress on a terminal says what runs, how far it is and the time left" do
    shown =
      ExUnit.CaptureIO.capture_io(:stderr, fn ->
        Tame.Progress.part("measuring latency", true)
        Tame.Progress.printer(true).(%{what: "port, round 1", done: 1, total: 2})
      end)

    assert shown =~ "50 %  port, round 1, about 0 s left"
    refute shown =~ "measuring"
  end
end
