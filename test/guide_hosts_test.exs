defmodule Tame.GuideHostsTest do
  # What docs/guide/hosts.md quotes stands in src/isolate/tame_hosts.erl.
  use ExUnit.Case, async: true

  @guide File.read!("../docs/guide/hosts.md")
  @source File.read!("../src/isolate/tame_hosts.erl")

  # A quote is less indented than its source where it is part of a clause.
  defp unindented(text), do: Regex.replace(~r/^ +/m, text, "")

  test "docs/guide/hosts.md quotes the code as it is" do
    quotes = for [_, quote] <- Regex.scan(~r/^```erlang\n(.*?)^```$/ms, @guide), do: quote
    assert length(quotes) == length(Regex.scan(~r/^```\w+$/m, @guide))
    assert quotes != []

    for quote <- quotes do
      assert unindented(@source) =~ unindented(quote), "not in tame_hosts.erl:\n#{quote}"
    end
  end

  test "the functions that docs/guide/hosts.md names are there" do
    for [_, module, function, arity] <- Regex.scan(~r/`(tame_\w+):(\w+)\/(\d+)`/, @guide) do
      module = String.to_atom(module)
      assert Code.ensure_loaded?(module), "#{module}"
      arity = String.to_integer(arity)
      assert function_exported?(module, String.to_atom(function), arity), "#{module}:#{function}"
    end
  end
end
