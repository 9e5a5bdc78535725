# The VM trusts nothing that a host writes to the control port. Under each attack it lives and answers, and keeps nothing of
# the host in the end. In modules that run beside each other, because most attacks wait.
modules = 3

for part <- 1..modules do
  defmodule Module.concat(Tame, "HostileControl#{part}Test") do
    use ExUnit.Case, async: true

    alias Tame.HostileScenarios
    alias Tame.Test.{CLibrary, HostileAttacks, HostileHost, OsProcess, PeerVm}

    # Unknown names in a million places make no atoms; modules that are loaded late, and names within
    # max_atoms, may make some.
    @atoms 110_000
    # 70 MB at most here; where cores are scarce what waits to be read (128 MiB, then the host is killed) is looked at late.
    @memory 512 * 1_048_576
    @info_ms 5_000
    @logged 2000

    setup_all do
      %{program: HostileHost.build!(CLibrary.tmp_dir!())}
    end

    for {name, number} <- Enum.with_index(HostileAttacks.names()),
        rem(number, modules) + 1 == part do
      test "a host that attacks: #{name}", %{program: program} do
        name = unquote(name)
        folder = CLibrary.tmp_dir!()
        peer = PeerVm.start_alone()
        on_exit(fn -> if Process.alive?(peer), do: :peer.stop(peer) end)
        seen = attack(peer, name, program, folder)

        assert seen.wrong == [], "another library, or tame:info/0: #{inspect(seen)}"
        assert seen.info_ms < @info_ms

        assert seen.restored == :ok or match?({:error, {:not_isolated, _}}, seen.restored),
               inspect(seen)

        assert seen.other == :right, inspect(seen)
        assert seen.decoy, "an OS process was killed that is none of tame's"
        assert seen.witness == [], "a process got messages that the library did not know"
        assert seen.starts >= seen.wanted, "not every part was played: #{inspect(seen)}"
        assert seen.atoms < @atoms, inspect(seen)
        assert seen.memory < @memory, inspect(seen)
        assert seen.logged < @logged, inspect(seen)
        # The VM lives, and so does none of the hosts.
        assert :peer.call(peer, :erlang, :node, []) == :nonode@nohost
        for os_pid <- started_from(folder), do: OsProcess.await_gone(os_pid)
        Process.unlink(peer)
        :peer.stop(peer)
      end
    end

    defp attack(peer, name, program, folder) do
      # It is stopped at the test's end, also of one that fails.
      Process.unlink(peer)
      :peer.call(peer, HostileScenarios, :attack, [name, program, folder], 190_000)
    catch
      kind, reason -> flunk("the VM has ended, or answers no more: #{inspect({kind, reason})}")
    end

    # By the path that they were started with, which no other test has.
    defp started_from(folder) do
      for file <- Path.wildcard("/proc/[0-9]*/cmdline"),
          {:ok, line} <- [File.read(file)],
          String.starts_with?(line, folder),
          do: file |> Path.dirname() |> Path.basename()
    end
  end
end
