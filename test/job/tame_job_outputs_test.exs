defmodule Tame.JobOutputsTest do
  # Outputs that grow, or that shrink, of tame.h: right in every placement, no slice of them is long, and nothing of them
  # is left over, however a call ends. test/c/output_test.c has what needs no VM.
  use ExUnit.Case, async: true

  import Tame.Test.Cut

  alias Tame.{JobOutputsScenarios, JobProbe}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared

  @mib 1024 * 1024

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{library: JobProbe.build(folder, "job_outputs")}
  end

  setup %{library: library} do
    env = [{~c"TAME_OUTPUTS_LIBRARY", to_charlist(library)}]
    %{peer: Tame.Test.PeerVm.start(%{env: env})}
  end

  test "one that grows is right in every placement", %{peer: peer} do
    for placement <- JobProbe.placements(), more <- [nil, 1, 1000, 5 * @mib] do
      wrong = call(peer, :wrong, [placement, [0, 1, 5000, 65_537, 3 * @mib + 5], more])
      assert {placement, more, wrong} == {placement, more, []}
    end
  end

  for placement <- [:yielding, :auto, :thread, :pool] do
    test "one that grows to 64 MiB holds no scheduler: #{placement}", %{peer: peer} do
      assert cut?(fn -> call(peer, :slices, [unquote(placement), 64 * @mib, 0]) end)
    end
  end

  # Not with sanitizers, which mark all memory that is allocated, in one go.
  @tag isolation: :none
  test "one of 64 MiB that shrinks, by little or by much, holds no scheduler", %{peer: peer} do
    for made <- [64 * @mib + 128 * 1024, 80 * @mib] do
      assert cut?(fn -> call(peer, :slices, [:yielding, 64 * @mib, made]) end)
    end
  end

  test "a result keeps little room that it does not need", %{peer: peer} do
    for made <- [0, 8 * @mib, 8 * @mib + 100_000, 20 * @mib] do
      assert call(peer, :held, [:yielding, 8 * @mib, made]) in (8 * @mib)..(9 * @mib)
    end

    assert call(peer, :held, [:yielding, 100, 0]) == 100
    assert call(peer, :held, [:yielding, 100, 60_000]) == 100
  end

  test "parts of several pieces are right", %{peer: peer} do
    for function <- [:parts, :parts_in_pool], cut <- [0, 1], bytes <- [10, 5000, 1_000_000] do
      assert {function, cut, call(peer, :parts, [function, bytes, cut])} ==
               {function, cut, [true, true, true]}
    end
  end

  for ending <- [:kill, :cancel, :deadline], placement <- [:yielding, :yielding_dirty, :pool] do
    test "nothing is left of one that ends while it is gathered: #{ending}, #{placement}", %{
      peer: peer
    } do
      assert call(peer, :ended, [unquote(placement), unquote(ending)]) == {true, true, 0}
    end
  end

  test "one that grows outside the state is refused", %{peer: peer} do
    assert call(peer, :outside, []) == {:tame, :output_outside_state}
  end

  defp call(peer, function, args),
    do: :peer.call(peer, JobOutputsScenarios, function, args, 600_000)
end
