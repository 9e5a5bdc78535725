defmodule Tame.DriverHTest do
  # c_include/tame/driver.h: its manual, its reference, and drivers that are refused.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  @manual File.read!("../c_include/tame/driver.h")
  @headers Enum.map_join(Path.wildcard("../c_include/tame/drv/*.h"), "\n", &File.read!/1)
  @reference File.read!("../docs/reference/driver_h.md")

  defp code,
    do: @headers |> String.replace(~r{/\*.*?\*/}s, " ") |> String.replace("static inline", "")

  defp names(text) do
    Regex.scan(~r/\b(?:tame_drv|TAME_DRV|TAME_DRIVER)_\w+/, text)
    |> List.flatten()
    |> Enum.reject(&(&1 =~ "impl" or &1 =~ "IMPL" or &1 =~ ~r/_H$/))
    |> Enum.uniq()
    |> Enum.sort()
  end

  defp one_line(text), do: text |> String.split() |> Enum.join(" ")

  test "the reference has a heading for every public name, and for no other" do
    # Names of threads, locks and types of resources are texts.
    public = code() |> String.replace(~r{"[^"\n]*"}, "") |> names()
    assert length(public) > 15
    assert public == names(Regex.scan(~r/^### .*$/m, @reference) |> Enum.map_join("\n", &hd/1))
  end

  test "and declares everything as the headers do" do
    code = one_line(code())
    blocks = Regex.scan(~r/^```c\n(.*?)^```$/ms, @reference)
    assert length(blocks) > 10
    for [_, block] <- blocks, do: assert(code =~ one_line(block))
  end

  test "and the manual give each constant the value it has" do
    defined = Regex.scan(~r/^#define (TAME_DRV_[A-Z_]+) (\d+)$/m, code())
    assert length(defined) == 3

    for [_, name, value] <- defined do
      assert @manual =~ ~r/^ \*   #{name} +#{value} /m
      [_, section] = Regex.run(~r/^### `#{name}`\n\n(\S+):/m, @reference)
      assert String.replace(section, ",", "") == value
    end
  end

  test "the manual has a driver that compiles and runs as it stands there" do
    [_, block] = Regex.run(~r/^ \* 1  A COMPLETE DRIVER\n(.*?)^ \* port_control\(/ms, @manual)
    dir = tmp_dir!()
    File.write!(Path.join(dir, "naps.c"), String.replace(block, ~r/^ \*( {5})?/m, ""))
    assert {"", 0} = compile(dir, "naps.c", ["-std=gnu11"])

    assert {"{[],<<\"slept\">>}", 0} =
             erl(dir, """
             ok = erl_ddll:load(".", "naps"),
             Port = open_port({spawn_driver, "naps"}, [binary]),
             Now = port_control(Port, 1, <<>>),
             io:format("~p", [{Now, receive {Port, {data, Later}} -> Later end}])
             """)
  end

  for {change, reason} <- [
        {{".driver_name = (char *)\"naps\",", ""}, "it has no driver_name"},
        {{"ERL_DRV_FLAG_USE_PORT_LOCKING", "ERL_DRV_FLAG_USE_INIT_ACK"},
         "ERL_DRV_FLAG_USE_INIT_ACK is not"}
      ] do
    test "a driver is refused, and standard error says why: #{reason}" do
      {from, to} = unquote(Macro.escape(change))
      [_, block] = Regex.run(~r/^ \* 1  A COMPLETE DRIVER\n(.*?)^ \* port_control\(/ms, @manual)
      dir = tmp_dir!()
      source = block |> String.replace(~r/^ \*( {5})?/m, "") |> String.replace(from, to)
      File.write!(Path.join(dir, "naps.c"), source)
      assert {"", 0} = compile(dir, "naps.c", ["-std=gnu11"])
      {out, _} = erl(dir, "io:format(\"~p\", [erl_ddll:load(\".\", \"naps\")])")
      assert out =~ unquote(reason)
      assert out =~ "{error,"
    end
  end

  test "the driver queue, which is the library's, does not compile" do
    dir = tmp_dir!()

    File.write!(Path.join(dir, "queue.c"), """
    #include <tame/driver.h>
    int put(ErlDrvPort port);
    int put(ErlDrvPort port) { return driver_enq(port, (char *)"x", 1); }
    """)

    assert {out, 1} = compile(dir, "queue.c")
    assert out =~ "poisoned"
  end
end
