defmodule Mix.Tasks.Tame.WatchScreenTest do
  # The task in a terminal. Not async: nodes are watched whose schedulers are held.
  use ExUnit.Case

  alias Tame.{Await, WatchNode}
  alias Tame.Latency.Distribution

  # The terminal of the tests of tame_tty: a pane of a tmux server of its own.
  Code.require_file("../../../libraries/tty/test/support/pane.ex", __DIR__)
  alias Tame.TTY.Test.Pane

  @moduletag skip: if(not Pane.tmux?(), do: "there is no tmux here")

  setup do
    {:ok, _} = Distribution.join()
    on_exit(fn -> Distribution.leave() end)
    watched = WatchNode.start()
    pane = Pane.start()
    on_exit(fn -> Pane.stop(pane) end)
    Pane.await(pane, ~r"[$#]")
    Pane.tmux(pane, ["resize-window", "-x", "110", "-y", "30"])
    Pane.run(pane, "cd #{Path.expand("../labs")}; export MIX_ENV=test; clear")
    %{watched: watched, pane: pane, before: Pane.stty(pane)}
  end

  # All is compiled already, by this very project.
  defp watch(%{watched: watched, pane: pane}, more) do
    Pane.run(
      pane,
      "mix do app.config --no-compile --no-deps-check + tame.watch --node #{watched.node} " <>
        "--cookie #{WatchNode.cookie()} #{more}; code=$?"
    )
  end

  defp ended!(%{watched: watched, pane: pane, before: before}, status) do
    Pane.until("the terminal is as before", fn -> Pane.stty(pane) == before end)
    Pane.until("the screen is the old one", fn -> not Pane.alternate?(pane) end)
    assert Pane.modes(pane) == %{cursor: true, mouse: false}
    # Typed before the shell has its terminal back, it is answered behind the prompt, or lost.
    Pane.until("the shell says the status", fn ->
      Pane.run(pane, "echo status $code")
      Process.sleep(300)
      Pane.screen(pane) =~ ~r/^([#$] )?status #{status}$/m
    end)

    assert Await.until(fn -> WatchNode.clean?(watched) end, 20_000)
    WatchNode.stop(watched)
  end

  test "who is in native code, paused, sorted, selected, in another size; q ends it", context do
    %{watched: watched, pane: pane} = context
    WatchNode.work(watched, :dirty, 1)
    {:ok, _} = WatchNode.call(watched, :application, :ensure_all_started, [:tame])
    :ok = WatchNode.call(watched, :tame, :isolate, [:tame_thousand_cuts])
    watch(context, "")

    Pane.await(pane, ~r/#{watched.node}  OTP \d+, second \d+/)
    assert Pane.alternate?(pane)
    assert Pane.stty(pane) =~ "-icanon"
    refute Pane.modes(pane).cursor
    Pane.await(pane, ~r/^<0\.\d+\.0> +tame_spin:spin_dirty_nif\/1 +dirty CPU +\d+/m)
    Pane.await(pane, ~r/^tame_spin:spin_dirty_nif\/1 +- +dirty CPU +\d+ +\d+/m)
    Pane.await(pane, ~r/^:tame_thousand_cuts +up +\d+ +\d+ +0 +0/m)

    Pane.keys(pane, ["s"])
    Pane.await(pane, "Callers of NIFs, by count")

    Pane.keys(pane, ["p"])
    paused = Pane.await(pane, "PAUSED")
    Pane.keys(pane, ["Down", "Enter"])
    Pane.await(pane, ~r/^current_function +tame_spin:spin_dirty_nif\/1/m)
    [_, second] = Regex.run(~r/second (\d+)/, paused)
    assert Pane.screen(pane) =~ "second #{second},"
    Pane.keys(pane, ["Space"])

    Pane.until("it goes on", fn ->
      screen = Pane.screen(pane)
      screen =~ ~r/second \d+/ and not (screen =~ "second #{second},") and not (screen =~ "PAUSED")
    end)

    Pane.tmux(pane, ["resize-window", "-x", "60", "-y", "12"])

    Pane.until("the help is in the last line", fn ->
      last = pane |> Pane.screen() |> String.split("\n", trim: true) |> List.last()
      last =~ "q quit" and String.length(last) <= 60
    end)

    Pane.keys(pane, ["q"])
    ended!(context, 0)
  end

  test "the summary is on the old screen when it has ended", context do
    watch(context, "--for 3s")
    Pane.await(context.pane, "neighbours woke")
    Pane.await(context.pane, ~r/^\d seconds, cost/m)
    ended!(context, 0)
  end

  for {signal, status} <- [{"TERM", 143}, {"KILL", 137}] do
    test "at SIG#{signal} the terminal is as before", context do
      watch(context, "")
      Pane.await(context.pane, "neighbours woke")
      assert Pane.alternate?(context.pane)
      terminal = Path.relative_to(context.pane.tty, "/dev")
      {pid, 0} = System.cmd("pgrep", ["-t", terminal, "beam.smp"])
      System.cmd("kill", ["-#{unquote(signal)}", String.trim(pid)])
      ended!(context, unquote(status))
    end
  end

  test "a node that goes ends it, and says so", context do
    %{watched: watched, pane: pane} = context
    watch(context, "")
    Pane.await(pane, "neighbours woke")
    WatchNode.stop(watched)
    Pane.await(pane, "the connection was lost")
    Pane.until("the terminal is as before", fn -> Pane.stty(pane) == context.before end)
  end

  test "--lines prints a text every second, as does a terminal without the library", context do
    watch(context, "--for 4s --lines")
    Pane.await(context.pane, "threads at work")
    refute Pane.alternate?(context.pane)
    Pane.await(context.pane, ~r/^\d seconds, cost/m)
    ended!(context, 0)
  end
end
