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

  # What control watches of two: the caller. process_exit ends both, whichever has fired, and sends which that was and
  # what ending each returned.
  @watching """
  #ifdef OURS
  #include <tame/driver.h>
  #define demonitor tame_drv_demonitor
  #define INIT(NAME, ENTRY) TAME_DRIVER_INIT(NAME, ENTRY, NULL)
  #else
  #include <erl_driver.h>
  #define demonitor driver_demonitor_process
  #define INIT(NAME, ENTRY) DRIVER_INIT(NAME) { return &ENTRY; }
  #endif
  #include <string.h>

  static struct { ErlDrvPort port; ErlDrvMonitor monitors[2]; int watched[2]; } watching;

  static char ended(int i) /* 9: it is not watched */
  {
      return watching.watched[i] ? (char)demonitor(watching.port, &watching.monitors[i]) : 9;
  }

  static ErlDrvData start(ErlDrvPort port, char *command)
  {
      (void)command;
      memset(&watching, 0, sizeof watching);
      watching.port = port;
      return (ErlDrvData)&watching;
  }
  static void stop(ErlDrvData data)
  {
      (void)data;
  }
  static ErlDrvSSizeT control(ErlDrvData data, unsigned int command, char *bytes, ErlDrvSizeT len,
                              char **reply, ErlDrvSizeT room)
  {
      ErlDrvMonitor *monitor = &watching.monitors[command % 10];
      const ErlDrvTermData caller = driver_caller(watching.port);

      (void)data, (void)bytes, (void)len, (void)room;
      if (command < 10)
          watching.watched[command] = driver_monitor_process(watching.port, caller, monitor) == 0;
      (*reply)[0] = command < 10 ? 0 : ended(command % 10);
      return 1;
  }
  static void process_exit(ErlDrvData data, ErlDrvMonitor *monitor)
  {
      char said[3];

      (void)data;
      said[0] = driver_compare_monitors(monitor, &watching.monitors[0]) == 0 ? 0 : 1;
      for (int i = 0; i < 2; i++)
          said[i + 1] = ended(i);
      driver_output(watching.port, said, 3);
  }
  static ErlDrvEntry entry = {.start = start, .stop = stop, .control = control,
                              .process_exit = process_exit, .driver_name = (char *)"watching",
                              .extended_marker = (int)ERL_DRV_EXTENDED_MARKER,
                              .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
                              .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
                              .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING};

  INIT(watching, entry)
  """

  # The caller dies, watched once or twice; what its port said then, and what ending a monitor returns after that.
  @watched """
  ok = erl_ddll:load(".", "watching"),
  Watched = fun(Monitors) ->
      Port = open_port({spawn_driver, "watching"}, [binary]),
      {Pid, Down} = spawn_monitor(fun() -> [[0] = port_control(Port, I, <<>>) || I <- Monitors] end),
      receive {'DOWN', Down, process, Pid, normal} -> ok end,
      Said = receive {Port, {data, <<Fired, Returned/binary>>}} -> {Fired, binary_to_list(Returned)} end,
      After = [hd(port_control(Port, 10 + I, <<>>)) || I <- [0, 1]],
      port_close(Port),
      {Said, After}
  end,
  io:format("~w", [[Watched([0]), Watched([0, 1])]]),
  Mine = open_port({spawn_driver, "watching"}, [binary]),
  [0] = port_control(Mine, 0, <<>>),
  io:format("~w", [[port_control(Mine, 10, <<>>), port_control(Mine, 10, <<>>)]])
  """

  defp watched(flags) do
    dir = tmp_dir!()
    File.write!(Path.join(dir, "watching.c"), @watching)
    assert {"", 0} = compile(dir, "watching.c", ["-std=gnu11" | flags])
    erl(dir, String.replace(@watched, "\n", " ") |> String.trim())
  end

  describe "a monitor that has fired, ended within process_exit" do
    # On OTP 25, 27 and 29. Where this fails a newer one survives it, and ours is not needed there.
    test "by the VM's own function ends the VM: why there is another" do
      assert {_, status} = watched([])
      assert status >= 128, "the VM ended with status #{status}, and not by a signal"
    end

    test "by ours does nothing, and others end as ever" do
      assert {out, 0} = watched(["-DOURS"])
      assert out =~ ~r/^\[{{0,\[1,9\]},\[1,9\]},{{0,\[1,0\]},\[1,1\]}\]\[\[0\],\[1\]\]/
    end
  end

  test "what may end the VM does not compile" do
    dir = tmp_dir!()

    File.write!(Path.join(dir, "end.c"), """
    #include <tame/driver.h>
    int end(ErlDrvPort port, ErlDrvMonitor *m);
    int end(ErlDrvPort port, ErlDrvMonitor *m) { return driver_demonitor_process(port, m); }
    """)

    assert {out, 1} = compile(dir, "end.c")
    assert out =~ "poisoned"
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
