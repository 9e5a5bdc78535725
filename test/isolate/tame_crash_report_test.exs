defmodule TameCrashReportTest do
  # What is printed of a host that ended: by OTP's own handler, and by Elixir's Logger, each in a VM of its own.
  use ExUnit.Case, async: true

  import Tame.Test.Package, only: [run: 3]

  @report "\#{library => jiffy, os_pid => 7, why => \#{signal => sigsegv}, state => up, up_ms => 5, start => 2}"
  @printed ~r"the host of :?jiffy \(OS process 7\) died of sigsegv, after 5 ms; start 2 follows"

  defp printed(before, later) do
    ours = Path.dirname(:code.which(:tame_crash_report))
    # Newer Elixir leaves logger out of the code path of those who do not name it.
    elixir =
      for app <- ~w(elixir logger), do: Path.join([:code.lib_dir(:elixir), "..", app, "ebin"])

    log = "tame_crash_report:log(#{@report}, 0, tame_crash_report:new())"
    eval = Enum.join([before, log, later, "init:stop()."], ", ")
    {out, 0} = run(ours, "erl", ["-noinput", "-pa", ours] ++ elixir ++ ["-eval", eval])
    out
  end

  test "OTP's own handler prints the sentence" do
    assert printed("ok", "ok") =~ @printed
  end

  test "Elixir's Logger prints the sentence" do
    started = "{ok, _} = application:ensure_all_started(logger)"
    assert printed(started, "'Elixir.Logger':flush()") =~ @printed
  end
end
