# The soak: isolated libraries under load while everything that can go wrong does.
#
#     make soak-isolated              30 minutes; SOAK_SECONDS=60 make soak-isolated for a minute
#
# This VM looks from outside. It computes with the libraries in it what each call must come to, starts another
# VM in which they are isolated and called (inside.ex), and says in the end whether that one has lived, was
# right, and leaked nothing. Exit status 0: it was, 1: it was not.

parts =
  for part <- ~w(libraries callers gauges trouble inside), do: Path.join(__DIR__, "#{part}.ex")

Enum.each(parts, &Code.require_file/1)

# Newer Elixir leaves what is no dependency out of the code path.
for folder <- Path.wildcard("#{:code.lib_dir()}/{jiffy,p1_*,bitcask}-*/ebin"),
    do: Code.append_path(folder)

alias Tame.Soak.{Inside, Libraries}
alias Tame.Test.{HostileAttacks, HostileHost, PeerVm}

seconds = String.to_integer(System.get_env("SOAK_SECONDS", "1800"))
seed = String.to_integer(System.get_env("SOAK_SEED", "#{:rand.uniform(999_999)}"))
folder = Path.join(System.tmp_dir!(), "tame_soak_#{System.pid()}")
File.mkdir_p!(folder)

libraries = Libraries.all(seed)
IO.puts("soak: #{seconds} s, seed #{seed}, OTP #{:erlang.system_info(:otp_release)}")
for %{module: module, calls: calls} <- libraries, do: IO.puts("  #{module}: #{length(calls)} calls")
for module <- Libraries.missing(), do: IO.puts("  #{module}: not installed")

protocol = HostileHost.protocol()
steps = HostileAttacks.every(5000, protocol)
hostile = HostileHost.install!(HostileHost.build!(folder), folder, "soak", steps)

options = %{
  seconds: seconds,
  libraries: libraries,
  hostile: hostile,
  # Files that only a library in the VM maps.
  mapped: Libraries.mapped_files()
}

Process.flag(:trap_exit, true)
peer = PeerVm.start_alone([~c"+c", ~c"true"])

{:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:elixir])

for part <- parts, do: :peer.call(peer, Code, :require_file, [part], 60_000)

result =
  try do
    :peer.call(peer, Inside, :run, [options], (seconds + 300) * 1000)
  catch
    kind, reason -> {:vm_ended, kind, reason}
  end

File.rm_rf!(folder)

case result do
  {:ok, lines} ->
    IO.puts(["\n", lines, "\nsoak: passed"])

  {:failed, lines} ->
    IO.puts(["\n", lines, "\nsoak: FAILED"])
    System.halt(1)

  {:vm_ended, _, reason} ->
    IO.puts("\nsoak: FAILED: the VM has ended, or answers no more: #{inspect(reason, limit: 5)}")
    System.halt(1)
end
