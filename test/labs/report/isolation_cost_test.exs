defmodule Tame.Report.IsolationCostTest do
  use ExUnit.Case, async: true

  alias Tame.Report.{IsolationCost, Words}

  @rows [
    {16, :nif, 80},
    {16, :dirty_nif, 1_000},
    {16, :isolated, 700},
    {16, :port, 14_000},
    {1_048_576, :isolated, 310_000},
    {1_048_576, :port, 900_000}
  ]

  test "says what a call costs with the least and the most, and how long a crash is felt" do
    assert [%{id: "isolation", answer: answer, spec: spec}] = IsolationCost.findings(@rows, 4.2)

    assert Words.plain(answer) ==
             "Native code that crashes takes the VM down; isolated, it takes down its own OS process, and answers again " <>
               "after 4.2\u00A0ms. A call then costs 0.7\u00A0µs with 16\u00A0B, 8.8 times a NIF, 0.7 times a dirty NIF and " <>
               "0.05 times a port; 310\u00A0µs with 1\u00A0MiB, 0.34 times a port."

    assert length(spec.data.values) == 6
    assert spec.encoding.x.scale.type == "log"
  end

  test "has a dot for each way where there is one size" do
    one = Enum.filter(@rows, &(elem(&1, 0) == 16))
    assert [%{answer: answer, spec: spec}] = IsolationCost.findings(one)
    refute Words.plain(answer) =~ "again"
    assert Enum.map(spec.data.values, & &1.method) == ["NIF", "dirty NIF", "isolated NIF", "port"]
  end

  test "says nothing where no isolated call was measured" do
    assert IsolationCost.findings([{16, :nif, 80}]) == []
  end
end
