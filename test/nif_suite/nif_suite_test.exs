defmodule Tame.NifSuiteTest do
  # OTP's own nif_SUITE in the VM, where all of it passes, and in a host, where what does not is what
  # docs/reference/nif_suite.md says. `make nif-suite` runs it; it takes some minutes, and Debian's source package.
  use ExUnit.Case, async: true

  folder = System.get_env("TAME_NIF_SUITE")

  if folder do
    alias Tame.Test.NifSuite

    @folder folder
    true = :code.add_pathz(to_charlist(folder))

    for {group, name} = test <- NifSuite.cases() do
      @tag timeout: 1_000_000
      test "#{group} #{name}" do
        if unquote(name) not in NifSuite.distributed(),
          do: assert(run(:vm, unquote(test)) == :ok)

        came = run(:host, unquote(test))

        if unquote(name) in NifSuite.excepted() do
          refute came == :ok, "it passes: take it out of the page"
        else
          assert came == :ok
        end
      end
    end

    test "the page names cases of the suite" do
      assert NifSuite.excepted() -- for({_, name} <- NifSuite.cases(), do: name) == []
    end

    defp run(where, test) do
      peer = Tame.Test.PeerVm.start_link(%{wait_boot: 60_000})

      try do
        :peer.call(peer, NifSuite, :run, [@folder, where, test], 950_000)
      catch
        :exit, reason -> {:vm_ended, reason}
      after
        :peer.stop(peer)
      end
    end
  else
    @moduletag skip: "make nif-suite runs it"
    test "nif_SUITE", do: :ok
  end
end
