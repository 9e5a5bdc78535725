defmodule Tame.HostileLeasesTest do
  # The memory of leases that a host does not use is bounded, and the host ends.
  use ExUnit.Case, async: true

  alias Tame.Test.{CLibrary, HostileHost, PeerVm}

  test "a running host that asks for leases without end is ended, and replaced" do
    folder = CLibrary.tmp_dir!()
    program = HostileHost.build!(folder)
    seen = PeerVm.scenario(PeerVm.start(), Tame.HostileScenarios, :leases, [program, folder])
    assert seen.report =~ "it wrote a query for leases, with two million that it has not used"
    assert seen.again
  end
end
