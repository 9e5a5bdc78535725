# The soak of jobs: a job library under load while its callers die and it is replaced and deleted (jobs.ex).
#
#     make soak-jobs                  10 minutes; SOAK_SECONDS=60 make soak-jobs for a minute
#
# It runs in a VM of its own. Exit status 0: that one has lived, was right, and leaked nothing; 1: it has not.

parts = for part <- ~w(gauges jobs), do: Path.join(__DIR__, "#{part}.ex")
Enum.each(parts, &Code.require_file/1)

alias Tame.{JobModel, JobProbe}
alias Tame.Test.PeerVm

seconds = String.to_integer(System.get_env("SOAK_SECONDS", "600"))
folder = Path.join(System.tmp_dir!(), "tame_soak_jobs_#{System.pid()}")
File.mkdir_p!(folder)
board = Path.join(folder, "board")
JobModel.new_board(board)
System.put_env("TAME_MODEL_LIBRARY", JobProbe.build(folder, "job_model"))
System.put_env("TAME_MODEL_BOARD", board)
IO.puts("soak of jobs: #{seconds} s, OTP #{:erlang.system_info(:otp_release)}")

Process.flag(:trap_exit, true)
peer = PeerVm.start_alone([~c"+c", ~c"true", ~c"+S", ~c"8:8", ~c"+SDcpu", ~c"8:8"])
{:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:elixir])
for part <- parts, do: :peer.call(peer, Code, :require_file, [part], 60_000)

result =
  try do
    :peer.call(peer, Tame.Soak.Jobs, :run, [seconds], (seconds + 600) * 1000)
  catch
    kind, reason -> {:vm_ended, kind, reason}
  end

File.rm_rf!(folder)

case result do
  {:ok, lines} ->
    IO.puts(["\n", lines, "\nsoak of jobs: passed"])

  {:failed, lines} ->
    IO.puts(["\n", lines, "\nsoak of jobs: FAILED"])
    System.halt(1)

  {:vm_ended, _, reason} ->
    IO.puts(
      "\nsoak of jobs: FAILED: the VM has ended, or answers no more: #{inspect(reason, limit: 5)}"
    )

    System.halt(1)
end
