defmodule Tame.TTY.EndsTest do
  # Not async: each test starts a VM.
  use ExUnit.Case
  alias Tame.TTY.Test.Pane

  @moduletag :terminal

  @starts ["-noinput", "-noshell"]

  setup do
    pane = Pane.start()
    on_exit(fn -> Pane.stop(pane) end)
    Pane.await(pane, ~r"[$#]")
    %{pane: pane, before: Pane.stty(pane)}
  end

  # Raw, with a screen of its own; gives the VM's process id.
  defp opened(pane, start) do
    Pane.run(pane, Pane.erl(start, "tame_tty_subject:main().") <> "; code=$?")
    screen = Pane.await(pane, ~r/^ready$/m)
    assert Pane.stty(pane) =~ "-icanon"
    assert Pane.alternate?(pane)
    assert Pane.modes(pane).mouse
    [_, pid] = Regex.run(~r/^pid (\d+)$/m, screen)
    String.to_integer(pid)
  end

  defp vms(pane) do
    {out, _} = Pane.pgrep(["-t", Path.relative_to(pane.tty, "/dev"), "beam.smp"])
    String.split(out)
  end

  defp guards(pane) do
    {out, _} = Pane.pgrep(["-f", "tame_tty_guard #{pane.tty}$"])
    String.split(out)
  end

  # What the shell says of a killed VM may be on the screen that goes away: it does not wait for the guard.
  defp turned_back!(pane, before, status) do
    Pane.until("the VM has ended", fn -> vms(pane) == [] end)
    Pane.until("the settings are as before", fn -> Pane.stty(pane) == before end)
    Pane.until("the screen is the old one", fn -> not Pane.alternate?(pane) end)
    assert Pane.modes(pane) == %{cursor: true, mouse: false}
    Pane.until("the guard has ended", fn -> guards(pane) == [] end)
    # And the shell has it.
    Pane.run(pane, "echo status $code")
    Pane.await(pane, ~r/^status #{status}$/m)
  end

  for start <- @starts do
    describe "#{start}: turned back" do
      @start start

      for {what, key, status} <- [
            {"by close", "F1", 0},
            {"at halt", "F6", 0},
            {"at halt that does not flush", "F7", 0},
            {"at init:stop", "F8", 0},
            {"at abort", "F9", 134}
          ] do
        test what, %{pane: pane, before: before} do
          opened(pane, @start)
          Pane.keys(pane, [unquote(key)])
          turned_back!(pane, before, unquote(status))
        end
      end

      for {signal, status} <- [{"TERM", 0}, {"HUP", 129}, {"KILL", 137}, {"ABRT", 134}] do
        test "at SIG#{signal}", %{pane: pane, before: before} do
          pid = opened(pane, @start)
          {_, 0} = System.cmd("kill", ["-#{unquote(signal)}", "#{pid}"])
          turned_back!(pane, before, unquote(status))
        end
      end

      for {what, key} <- [{"crashes", "F2"}, {"is killed", "F3"}, {"ends", "F4"}] do
        test "when the owner #{what}", %{pane: pane, before: before} do
          pid = opened(pane, @start)
          Pane.keys(pane, [unquote(key)])
          Pane.await(pane, ~r/^another$/m)
          assert Pane.stty(pane) =~ "-icanon"
          Pane.keys(pane, ["!"])
          Pane.await(pane, "owner gone")
          Pane.until("the settings are as before", fn -> Pane.stty(pane) == before end)
          Pane.until("the guard has ended", fn -> guards(pane) == [] end)
          System.cmd("kill", ["-KILL", "#{pid}"])
          turned_back!(pane, before, 137)
        end
      end

      test "when the session's process is killed, and open to the next", ctx do
        %{pane: pane, before: before} = ctx
        opened(pane, @start)
        Pane.keys(pane, ["F5"])
        Pane.await(pane, "session gone")
        Pane.until("the settings are as before", fn -> Pane.stty(pane) == before end)
        Pane.go_on(pane)
        Pane.await(pane, "opened again")
        assert Pane.stty(pane) =~ "-icanon"
        Pane.keys(pane, ["x"])
        Pane.await(pane, "{key,120,[]}")
        Pane.keys(pane, ["F1"])
        turned_back!(pane, before, 0)
      end

      test "when the guard is killed, and the owner is told", %{pane: pane, before: before} do
        opened(pane, @start)
        assert [guard] = guards(pane)
        {_, 0} = System.cmd("kill", ["-KILL", guard])
        Pane.await(pane, ~s({closed,{guard,<<"exit status 137">>}}))
        turned_back!(pane, before, 4)
      end
    end
  end

  test "a guard takes no signal but SIGKILL, and ends with the VM", %{pane: pane, before: before} do
    pid = opened(pane, "-noinput")
    [guard] = guards(pane)
    for signal <- ~w(HUP INT TERM QUIT TSTP USR1), do: System.cmd("kill", ["-#{signal}", guard])
    assert guards(pane) == [guard]
    System.cmd("kill", ["-KILL", "#{pid}"])
    turned_back!(pane, before, 137)
  end

  @tag skip: if(System.otp_release() >= "26", do: "this VM's own helper sets them back")
  test "settings that somebody has changed since are left as they are", %{pane: pane} do
    pid = opened(pane, "-noinput")
    {_, 0} = System.cmd("stty", ["-F", pane.tty, "-parenb", "opost"])
    changed = Pane.stty(pane)
    System.cmd("kill", ["-KILL", "#{pid}"])
    Pane.until("the guard has ended", fn -> guards(pane) == [] end)
    assert Pane.stty(pane) == changed
  end
end
