defmodule Tame.TTY.StartsTest do
  # As it is started: from mix, and in a release in the foreground. Not async: each test starts a VM.
  use ExUnit.Case
  alias Tame.TTY.Test.Pane

  @moduletag :terminal

  setup do
    folder = Path.join(System.tmp_dir!(), "tame_tty_starts_#{System.pid()}")
    on_exit(fn -> File.rm_rf!(folder) end)
    pane = Pane.start()
    on_exit(fn -> Pane.stop(pane) end)
    Pane.await(pane, ~r"[$#]")
    %{pane: pane, before: Pane.stty(pane), folder: folder}
  end

  @mix_run "MIX_ENV=test mix run --no-compile --no-deps-check"

  test "by mix run", %{pane: pane, before: before} do
    Pane.run(pane, "cd #{File.cwd!()}; #{@mix_run} -e ':tame_tty_subject.main()'; code=$?")
    works_and_ends!(pane, before, ["F1"], 0)
  end

  test "the example", %{pane: pane, before: before} do
    Pane.run(pane, "cd #{File.cwd!()}; #{@mix_run} examples/keys.exs; code=$?")
    started!(pane, "80 by 24. Press keys")
    Pane.keys(pane, ["a", "M-F5"])
    Pane.await(pane, "{:key, 97, []}\n{:key, {:f, 5}, [:alt]}")
    Pane.keys(pane, ["q"])
    ended!(pane, before, 0)
  end

  test "in a release", %{pane: pane, before: before, folder: folder} do
    {_, 0} =
      System.cmd("mix", ["release", "--no-compile", "--no-deps-check", "--quiet", "--path", folder],
        env: [{"MIX_ENV", "test"}],
        stderr_to_stdout: true
      )

    # No node: it would leave an epmd behind.
    environment = "RELEASE_DISTRIBUTION=none ERL_FLAGS=\"-eval tame_tty_subject:main().\""
    start = "#{environment} #{folder}/bin/tame_tty start"

    for {how, status} <- [{["F1"], 0}, {:kill, 137}] do
      Pane.run(pane, "clear; #{start}; code=$?")
      works_and_ends!(pane, before, how, status)
    end
  end

  defp works_and_ends!(pane, before, how, status) do
    screen = started!(pane, ~r/^ready$/m)
    Pane.keys(pane, ["C-Up", "é"])
    Pane.await(pane, "{key,up,[ctrl]}\n{key,233,[]}")
    [_, pid] = Regex.run(~r/^pid (\d+)$/m, screen)
    if how == :kill, do: System.cmd("kill", ["-KILL", pid]), else: Pane.keys(pane, how)
    ended!(pane, before, status)
  end

  defp started!(pane, expected) do
    screen = Pane.await(pane, expected, System.monotonic_time(:millisecond) + 60_000)
    assert Pane.stty(pane) =~ "-icanon"
    screen
  end

  defp ended!(pane, before, status) do
    Pane.until("the settings are as before", fn -> Pane.stty(pane) == before end)
    Pane.until("the screen is the old one", fn -> not Pane.alternate?(pane) end)

    # Typed before the shell has its terminal back, it is answered behind the prompt, or lost.
    Pane.until("the shell says the status", fn ->
      Pane.run(pane, "echo status $code")
      Process.sleep(300)
      Pane.screen(pane) =~ ~r/^([#$] )?status #{status}$/m
    end)
  end
end
