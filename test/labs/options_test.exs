defmodule Tame.OptionsTest do
  use ExUnit.Case, async: true
  doctest Tame.Options

  alias Tame.Options

  @switches [
    bytes: :non_neg_integer,
    rounds: :pos_integer,
    only: :list,
    json: :string,
    quick: :flag
  ]

  test "reads each type" do
    argv = ~w(--bytes 1_000 --rounds 2 --only a,b --json out.json --quick)

    assert {:ok, options} = Options.parse(argv, @switches)

    assert Enum.sort(options) ==
             [bytes: 1000, json: "out.json", only: ["a", "b"], quick: true, rounds: 2]
  end

  for {argv, message} <- [
        {~w(--rounds 0), "--rounds 0: expected a whole number of 1 or more"},
        {~w(--rounds -3), "--rounds -3: expected a whole number of 1 or more"},
        {~w(--bytes -1), "--bytes -1: expected a whole number of 0 or more"},
        {~w(--bytes 1.5), "--bytes 1.5: expected a whole number of 0 or more"},
        {~w(--bytes), "--bytes needs a value"},
        {~w(--json -sname),
         "--json needs a value, got the switch -sname; as a value it is --json=-sname"},
        {~w(--quick=maybe), "--quick takes no value, got: maybe"},
        {~w(--quick=false), "--quick takes no value, got: false"},
        {~w(--no-quick),
         "unknown switch --no-quick, expected one of: --bytes, --rounds, --only, --json, --quick"},
        {~w(--only ,), "--only ,: expected at least one word, with commas between them"},
        {["--only", ""], ~s(--only "": expected at least one word, with commas between them)},
        {["--json", ""], ~s(--json "": expected a value)},
        {["--rounds="], ~s(--rounds "": expected a whole number of 1 or more)},
        {~w(extra),
         ~s(unexpected word "extra", expected one of: --bytes, --rounds, --only, --json, --quick)},
        {~w(--byte 1),
         "unknown switch --byte, expected one of: --bytes, --rounds, --only, --json, --quick"}
      ] do
    test "#{Enum.join(argv, " ")} is refused in one line" do
      assert Options.parse(unquote(argv), @switches) == {:error, unquote(message)}
    end
  end
end
