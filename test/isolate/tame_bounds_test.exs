defmodule Tame.BoundsTest do
  # Bounds that stand in C and in Erlang: the VM ends a host that goes beyond its own.
  use ExUnit.Case, async: true

  @control "src/isolate/tame_control.erl"
  @bounds "c_src/host/port/frame_bounds.h"
  @names "c_src/ring/etf_names.h"
  @library "c_src/host/life/library.h"

  for {{erlang, word}, {c, name}} <- [
        {{@control, "FRAME_BYTES_MAX"}, {@bounds, "FRAME_BYTES_MAX"}},
        {{@control, "FRAME_MEMORY_MAX"}, {@bounds, "FRAME_MEMORY_MAX"}},
        {{@control, "LEASES_MAX"}, {@bounds, "LEASES_MAX"}},
        {{@control, "NAME_BYTES_MAX"}, {"c_src/host/memory/name.h", "ATOM_BYTES_MAX"}},
        {{@control, "NAMES_OF_NODES"}, {@names, "ETF_NAMES_MAX"}},
        {{"src/isolate/tame_host_libraries.erl", "LIBRARIES_MAX"}, {@library, "LIBRARIES_MAX"}},
        {{"src/isolate/tame_host_libraries.erl", "FUNCTIONS_MAX"},
         {@library, "LIBRARY_FUNCTIONS_MAX"}}
      ] do
    test "#{word} of #{erlang} is #{name} of #{c}" do
      assert of_erlang(unquote(erlang), unquote(word)) == of_c(unquote(c), unquote(name))
    end
  end

  test "names of nodes are forgotten after the same time" do
    assert of_erlang(@control, "NAMES_S") * 1_000_000_000 == of_c(@names, "ETF_NAMES_NS")
  end

  test "what a host asks for together is less than the VM reads of it" do
    prepare = "c_src/host/wire/prepare.c"
    assert of_c(prepare, "ATOMS_TOGETHER") < of_erlang(@control, "NAMES_MAX")
    assert of_c(prepare, "REFS_TOGETHER") < of_erlang(@control, "LEASES_MAX")
  end

  test "a library has no more functions than its numbers are" do
    assert of_erlang(@control, "FUNCTIONS_MAX") <= of_c(@library, "LIBRARY_FUNCTIONS_MAX")
  end

  test "a host knows that it floods the VM long before that ends it" do
    most = of_erlang("src/isolate/tame_host_port.erl", "FLOOD_LEN")
    assert most > 4 * of_c("c_src/host/wire/tell.c", "UNITS_AHEAD")
  end

  test "both speak the same protocol" do
    protocol = of_c("c_src/host/life/control.h", "CONTROL_PROTOCOL")
    assert {:ok, {:hello, 17}} = :tame_control.check({:hello, protocol, 17, %{}})
  end

  defp of_erlang(path, name), do: value(path, name, ~r/^-define\(#{name}, (.+)\)\.$/m)
  defp of_c(path, name), do: value(path, name, ~r/^#define #{name} (.+?)(?: *\/\*.*)?$/m)

  # An expression of numbers, in parentheses or not; a word in it is another name of the same file.
  defp value(path, name, pattern) do
    text = File.read!(Path.join(:tame.source_dir(), path))
    [_, expression] = Regex.run(pattern, text) || flunk("no #{name} in #{path}")

    numbers =
      expression
      |> String.replace(
        ~r/\b[A-Z_]{4,}\b(?!\()/,
        &to_string(value(path, &1, like(pattern, name, &1)))
      )
      |> String.replace(~r/UINT64_C\((\d+)\)|\b(\d+)u\b/, "\\1\\2")
      |> String.replace("<<", "bsl")

    {:ok, tokens, _} = :erl_scan.string(~c"#{numbers}.")
    {:ok, [form]} = :erl_parse.parse_exprs(tokens)
    {:value, value, _} = :erl_eval.expr(form, [])
    value
  end

  defp like(pattern, name, other),
    do: Regex.compile!(String.replace(Regex.source(pattern), name, other), "m")
end
