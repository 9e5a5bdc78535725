defmodule Tame.JobSlicesTest do
  # How long a call holds its scheduler at most, as the VM's tracing sees it: always a small part of a long call,
  # whatever was learnt before, and whatever the call works on. In VMs of their own.
  use ExUnit.Case, async: true

  alias Tame.{JobProbe, JobSlicesScenarios}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared

  setup_all do
    folder = CLibrary.tmp_dir!()
    library = JobProbe.build(folder, "job_library")
    File.mkdir_p!(Path.join(folder, "results"))
    results = JobProbe.build(Path.join(folder, "results"), "job_results")

    env = [
      {~c"TAME_JOB_LIBRARY", to_charlist(library)},
      {~c"TAME_PROBE_LIBRARY", to_charlist(results)}
    ]

    %{env: env}
  end

  setup %{env: env}, do: %{peer: Tame.Test.PeerVm.start(%{env: env})}

  for placement <- [:yielding, :auto] do
    test "a call that costs 10,000 times as much per unit as those before: #{placement}", %{
      peer: peer
    } do
      assert cut?(peer, :dearer, [unquote(placement)])
    end
  end

  test "a result of a million elements that build makes", %{peer: peer} do
    assert cut?(peer, :built, [3_000_000])
  end

  test "the parts of a stream, whose reader pays for them", %{peer: peer} do
    assert cut?(peer, :read, [20_000])
  end

  test "a binary that begins in the middle of a byte", %{peer: peer} do
    assert cut?(peer, :unaligned, [100_000_000])
    assert call(peer, :unaligned_is_right, []) == true
  end

  # The copy, and not the pieces of it besides; a process that ends leaves nothing. Under +Mea min (make test-sanitized)
  # nobody counts.
  @tag skip: System.get_env("TAME_NATIVE_DIR") != nil && "no memory is counted"
  test "a binary that begins in the middle of a byte is copied into one", %{peer: peer} do
    {most, killed, freed?} = call(peer, :unaligned_memory, [200_000_000])
    assert most > 0.2 and most < 1.5
    assert killed == :killed
    assert freed?
  end

  for form <- [:binary, :list] do
    test "iodata that begins in the middle of a byte: #{form}", %{peer: peer} do
      assert cut?(peer, :unaligned_iodata, [50_000_000, unquote(form)])
    end
  end

  test "iodata that begins in the middle of a byte is right", %{peer: peer} do
    assert call(peer, :unaligned_iodata_is_right, []) == true
  end

  # Such a size was believed once, and what lay behind the binary was read: the VM ended by SIGSEGV.
  test "a size that comes with iodata is not believed", %{peer: peer} do
    assert call(peer, :claimed_sizes, []) == [ArgumentError]
  end

  test "an argument that no step reads costs a call in the pool nothing", %{peer: peer} do
    {large, small} = call(peer, :ignored, [3_000_000])
    assert large < 50 * max(small, 10)
  end

  test "an init that fails is charged for its time", %{peer: peer} do
    assert call(peer, :late_refusal, [20_000]) > 4000 * 15
  end

  test "a unit that takes longer than a NIF may is in the log, once", %{peer: peer} do
    assert [line] = call(peer, :slow_unit, [])
    assert line =~ "Elixir.Tame.JobLibrary:count_yielding_nif/3: a unit of its work took"
  end

  defp cut?(peer, function, args), do: Tame.Test.Cut.cut?(fn -> call(peer, function, args) end)

  defp call(peer, function, args),
    do: :peer.call(peer, JobSlicesScenarios, function, args, 600_000)
end
