defmodule CopycatTest do
  use ExUnit.Case

  test "copies" do
    assert Copycat.copy("abc") == "abc"
    assert Copycat.copy("") == ""
    assert_raise ArgumentError, fn -> Copycat.copy(:abc) end
  end

  test "tame measures it beside its own methods" do
    methods = [Tame.Latency.Methods.NIFNormal, Copycat.Method]
    result = Tame.Latency.measure(:binary.copy("x", 1000), 100, methods: methods)

    assert [%{id: "nif_normal", status: "ok"}, %{id: "copycat", status: "ok", count: 100}] =
             result.methods
  end
end
