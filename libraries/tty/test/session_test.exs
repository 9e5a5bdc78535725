defmodule Tame.TTY.SessionTest do
  # Not async: each test starts a VM.
  use ExUnit.Case
  alias Tame.TTY.Test.Pane

  @moduletag :terminal

  setup do
    pane = Pane.start()
    on_exit(fn -> Pane.stop(pane) end)
    Pane.await(pane, ~r"[$#]")
    %{pane: pane, before: Pane.stty(pane)}
  end

  defp open(pane, flags) do
    Pane.run(pane, Pane.erl(flags, "tame_tty_subject:main()."))
    Pane.await(pane, ~r/^ready$/m)
  end

  for flags <- ["-noinput", "-noshell"] do
    test "#{flags}: keys, the mouse and what is pasted come as events", %{pane: pane} do
      open(pane, unquote(flags))

      Pane.keys(pane, ["a", "C-Up", "M-x", "é", "Enter", "BSpace", "C-c"])
      Pane.await(pane, "{key,97,[]}\n{key,up,[ctrl]}\n{key,120,[alt]}\n{key,233,[]}\n")
      Pane.await(pane, "{key,enter,[]}\n{key,backspace,[]}\n{key,99,[ctrl]}\n")
      Pane.bytes(pane, "\e[<0;5;6M\e[<0;5;6m")
      Pane.await(pane, "{mouse,press,left,{5,6},[]}\n{mouse,release,left,{5,6},[]}")
      Pane.tmux(pane, ["set-buffer", "two\nlines"])
      Pane.tmux(pane, ["paste-buffer", "-p", "-r"])
      Pane.await(pane, ~s({paste,last,<<"two\\nlines">>}))
    end

    test "#{flags}: an ESC alone is the key, after a moment", %{pane: pane} do
      open(pane, unquote(flags))
      Pane.bytes(pane, "\e")
      Pane.await(pane, "{key,escape,[]}")
    end

    test "#{flags}: a cooked terminal is another's, and comes back", ctx do
      %{pane: pane, before: before} = ctx
      open(pane, unquote(flags))
      Pane.keys(pane, ["F10"])
      Pane.await(pane, ~r/^cooked$/m)
      assert Pane.stty(pane) == before
      refute Pane.alternate?(pane)
      Pane.go_on(pane)
      Pane.await(pane, "raw again")
      assert Pane.stty(pane) =~ "-icanon"
      Pane.keys(pane, ["b"])
      Pane.await(pane, "{key,98,[]}")
    end
  end

  test "characters are written as UTF-8, other bytes as they are", %{pane: pane} do
    open(pane, "-noinput")
    Pane.keys(pane, ["F11"])
    Pane.await(pane, ~r/^café ∀ ∃$/mu)
  end

  test "a new size is told, and a second session is refused", %{pane: pane} do
    open(pane, "-noinput")
    Pane.keys(pane, ["F12"])
    Pane.await(pane, "size {80,24}")
    Pane.tmux(pane, ["resize-window", "-x", "90", "-y", "30"])
    Pane.await(pane, "{resize,{90,30}}")
    Pane.keys(pane, ["F12"])
    Pane.await(pane, "size {90,30}")
  end

  test "keys that are typed beside many are all there, in order", %{pane: pane} do
    open(pane, "-noinput")
    for digit <- ~w(1 2 3 4 5), do: Pane.bytes(pane, String.duplicate(digit, 3))
    expected = for digit <- ?1..?5, _ <- 1..3, do: "{key,#{digit},[]}"
    Pane.await(pane, Enum.join(expected, "\n"))
  end

  test "an interactive shell is refused in a sentence, or gives its terminal away", ctx do
    %{pane: pane, before: before} = ctx
    Pane.run(pane, Pane.erl("", "ok."))
    Pane.await(pane, ~r/^1> ?$/m)
    shell = Pane.stty(pane)

    if List.to_integer(:erlang.system_info(:otp_release)) < 26 do
      Pane.run(pane, "{error, R} = tame_tty:open(), io:put_chars(tame_tty:format_error(R)).")
      Pane.await(pane, "OTP 25's shell reads the terminal: start the VM with -noshell")
    else
      Pane.run(pane, "{ok,T} = tame_tty:open(), receive {_, T, E} -> tame_tty:close(T), E end.")
      Pane.until("it is raw", fn -> Pane.alternate?(pane) end)
      Pane.keys(pane, ["Up"])
      Pane.await(pane, "{key,up,[]}")
    end

    assert Pane.stty(pane) == shell
    Pane.run(pane, "20 + 1.")
    Pane.await(pane, ~r/^21$/m)
    Pane.run(pane, "halt().")
    Pane.until("the settings are as before", fn -> Pane.stty(pane) == before end)
  end

  test "a VM in the background, and one without a terminal, are refused", %{pane: pane} do
    Pane.run(pane, "set -m; " <> Pane.erl("-noinput", "tame_tty_subject:main().") <> " & wait $!")
    Pane.await(pane, "refused: the VM runs in the background, and another job has the terminal")

    command = Pane.erl("-noinput", "tame_tty_subject:main().")
    {out, 3} = System.cmd("setsid", ["-w", "sh", "-c", command <> " </dev/null 2>&1"])
    assert out =~ "refused: there is no terminal: expected standard input"
  end

  test "a terminal that goes away ends the VM with it, and the guard", %{pane: pane} do
    open(pane, "-noinput")
    Pane.stop(pane)
    terminal = Path.relative_to(pane.tty, "/dev")

    Pane.until("all have ended", fn ->
      {vms, _} = Pane.pgrep(["-t", terminal, "beam.smp"])
      {guards, _} = Pane.pgrep(["-f", "tame_tty_guard #{pane.tty}$"])
      vms <> guards == ""
    end)
  end
end
