defmodule Tame.JobModelTest do
  # Gate, contexts, streams, deadlines, cancels and deaths against a model of them, in random sequences; and all at once, with
  # the library replaced and unloaded, where only what must hold in the end is looked at. More of both:
  # TAME_TEST_SEQUENCES=1000, TAME_TEST_STORMS=1000.
  use ExUnit.Case, async: true

  import :proper_types, only: [integer: 2, list: 1, oneof: 1, frequency: 1]

  alias Tame.{JobModel, JobModelSequences, JobModelStorm, JobProbe, Property}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared
  @moduletag timeout: 3_600_000

  @storms String.to_integer(System.get_env("TAME_TEST_STORMS", "25"))
  @sequences String.to_integer(System.get_env("TAME_TEST_SEQUENCES", "25"))

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{folder: folder, library: JobProbe.build(folder, "job_model")}
  end

  # In a VM of its own, with more schedulers than cores, because dirty calls that are held keep theirs.
  setup context do
    board = Path.join(context.folder, "board_#{System.unique_integer([:positive])}")
    JobModel.new_board(board)
    library = {~c"TAME_MODEL_LIBRARY", to_charlist(context.library)}
    env = [library, {~c"TAME_MODEL_BOARD", to_charlist(board)} | context[:vm_env] || []]
    args = [~c"+S", ~c"8:8", ~c"+SDcpu", ~c"8:8", ~c"+sbwt", ~c"none", ~c"+sbwtdcpu", ~c"none"]
    peer = Tame.Test.PeerVm.start(%{env: env, args: args ++ (context[:vm_args] || [])})
    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:elixir])
    %{peer: peer}
  end

  test "who waits, runs and has ended is what the rules say, after each command", %{peer: peer} do
    Property.check(
      {oneof(JobModelSequences.placements()), list(command())},
      fn sequence -> :peer.call(peer, JobModelSequences, :run, [sequence], 600_000) end,
      numtests: @sequences,
      max_size: 40,
      # What breaks it is waited for, each time.
      max_shrinks: 8
    )
  end

  # Else each part would have the VM copy them, on a scheduler.
  for placement <- JobProbe.placements() do
    test "a stream goes on with the copy of bytes that began in the middle of a byte: #{placement}",
         %{peer: peer} do
      args = [unquote(placement), 300_000, 20]
      {first, last, parts, sum} = :peer.call(peer, JobModel, :unaligned_stream, args, 600_000)
      assert {first, last} == {:copy, :copy}
      assert parts == for(number <- 1..20, do: {7, number, sum})
    end
  end

  # What the VM has freed is of no use any more: the C library has written over it.
  for call <- [:late_thing, parts: :dirty_cpu, parts: :dirty_io] do
    @tag vm_args: [~c"+Mea", ~c"min"], vm_env: [{~c"MALLOC_PERTURB_", ~c"90"}]
    test "the code is purged while a dirty call goes on whose caller was killed: #{inspect(call)}",
         %{peer: peer} do
      for _ <- 1..5,
          do:
            assert(
              :peer.call(peer, JobModelStorm, :purged_under_a_dirty_call, [unquote(call)], 600_000)
            )
    end
  end

  for {what, events} <- [
        {"callers die, cancel and meet deadlines", []},
        {"the library is replaced and unloaded", [:upgrade, :purge, :delete]}
      ] do
    test "all is as it must be, and free in the end, when #{what}", %{peer: peer} do
      Property.check(
        {list(storm_call()), events(unquote(events))},
        fn storm -> :peer.call(peer, JobModelStorm, :run, [storm], 600_000) end,
        numtests: @storms,
        max_size: 40,
        max_shrinks: 8
      )
    end
  end

  defp storm_call do
    us = integer(0, 3000)

    {oneof([:gated, :free, :parts]), oneof(JobProbe.placements()), oneof([:none, :one, :two]),
     frequency([{6, us}, {1, :fail}, {1, :refuse}]), us,
     frequency([
       {4, :none},
       {4, {:kill, us}},
       {2, {:cancel, us}},
       {2, {:deadline, integer(0, 5)}},
       {1, {:halt, integer(0, 4)}},
       {1, {:drop, integer(1, 4)}}
     ])}
  end

  defp events([]), do: []
  defp events(kinds), do: [{oneof(kinds), integer(0, 4000)}, {oneof(kinds), integer(0, 8000)}]

  defp command do
    n = integer(0, 100)
    mode = frequency([{6, :plain}, {4, :async}, {1, :deadline}])
    work = frequency([{6, :held}, {1, :fail}, {1, :refuse}])

    frequency([
      {12,
       {:call, oneof([:gated, :gated, :free, :parts]), integer(0, 1),
        oneof([:none, :one, :one, :two]), mode, work}},
      {5, {:release, n}},
      {3, {:kill, n}},
      {2, {:cancel, n}},
      {3, {:pull, n}},
      {1, {:drop, n, oneof([:halt, :drop])}}
    ])
  end
end
