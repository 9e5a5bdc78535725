defmodule Tame.JobLibraryTest do
  # What a real library needs of tame.h: terms in steps, results in steps, failures, streams, iodata, growing outputs,
  # contexts, hooks, plain NIFs.
  use ExUnit.Case, async: true

  alias Tame.{JobLibrary, JobLibraryScenarios, JobProbe}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared

  @placements JobProbe.placements()
  @on_schedulers @placements -- [:thread, :pool]

  setup_all do
    folder = CLibrary.tmp_dir!()
    library = JobProbe.build(folder, "job_library")
    File.mkdir_p!(Path.join(folder, "keeps"))
    keeps = JobProbe.build(Path.join(folder, "keeps"), "job_library", ["-DKEEPS"])
    %{library: library, keeps: keeps}
  end

  # In a VM of its own: contexts and cleanups are counted.
  setup context do
    env = [{~c"TAME_JOB_LIBRARY", to_charlist(context[context[:build] || :library])}]
    %{peer: Tame.Test.PeerVm.start(%{env: env})}
  end

  describe "terms in steps" do
    for placement <- @on_schedulers do
      test "a list is walked over many slices: #{placement}", %{peer: peer} do
        numbers = Enum.to_list(1..300_000)
        {sum, threads} = call(peer, :sum, unquote(placement), [numbers])
        assert sum == Enum.sum(numbers)
        assert threads in allowed(unquote(placement))
        assert {0, _} = call(peer, :sum, unquote(placement), [[]])

        assert error(peer, :sum, unquote(placement), [[1, :two, 3]]) == {:no_integer, :two}

        assert error(peer, :sum, unquote(placement), [[1 | 2]]) ==
                 {:badarg, 1, ~c"must be a proper list"}

        assert error(peer, :sum, unquote(placement), [:none]) == {:badarg, 1, ~c"must be a list"}
      end
    end

    test "auto takes them to the dirty schedulers when it has used its budget, total known or not; and others to the pool",
         %{peer: peer} do
      # 1: a normal scheduler, 2: a dirty one, 4: a thread of the library's own. Four times the budget.
      for what <- [:ok, :unknown] do
        assert {what, {[], 3}} == {what, call(peer, JobLibrary, :count_terms, [400_000, 0, what])}
        assert {what, {[], 5}} == {what, call(peer, :count, :auto, [400_000, 0, what])}
      end
    end

    test "they survive collections between the slices", %{peer: peer} do
      assert call(peer, JobLibraryScenarios, :sum_beside_garbage, []) == :same
    end
  end

  describe "a result in steps" do
    for placement <- @placements do
      test "is the same everywhere: #{placement}", %{peer: peer} do
        for length <- [0, 1, 100_000] do
          {list, _} = call(peer, :count, unquote(placement), [200, length, :ok])
          assert list == Enum.to_list(length..1//-1)
        end
      end

      test "a step may fail: #{placement}", %{peer: peer} do
        for us <- [0, 500] do
          assert error(peer, :count, unquote(placement), [us, 0, :fail]) == {:corrupt, 7}

          assert error(peer, :count, unquote(placement), [us, 0, :badarg]) ==
                   {:badarg, 2, ~c"is corrupt"}

          assert error(peer, :count, unquote(placement), [us, 0, :nothing]) == {:tame, :failed}
        end
      end

      test "a step that does not get on is ended: #{placement}", %{peer: peer} do
        assert error(peer, :count, unquote(placement), [10, 0, :idle]) == {:tame, :no_progress}
      end
    end
  end

  describe "a stream" do
    for placement <- @placements do
      test "gives each part when it is wanted: #{placement}", %{peer: peer} do
        assert call(peer, JobLibraryScenarios, :parts, [unquote(placement), 1, 200]) ==
                 for(n <- 1..200, do: {n})

        assert call(peer, JobLibraryScenarios, :parts, [unquote(placement), 1, 0]) == []

        assert call(peer, JobLibraryScenarios, :first_parts, [unquote(placement), 3]) ==
                 {[{1}, {2}, {3}], 1}
      end
    end

    for placement <- @placements do
      test "ends at the deadline that counts where it is read, and at its own: #{placement}",
           %{peer: peer} do
        assert call(peer, JobLibraryScenarios, :deadlines_of_streams, [unquote(placement)]) ==
                 [[], {:tame, :deadline}, {:tame, :deadline}]
      end
    end

    test "has no part where its step says so and emits none", %{peer: peer} do
      for placement <- @placements do
        assert {placement, call(peer, JobLibraryScenarios, :partless, [placement])} ==
                 {placement, {:tame, :bad_part}}
      end
    end

    test "is collected with its term, and ended by its process alone, and walked once", %{
      peer: peer
    } do
      assert call(peer, JobLibraryScenarios, :dropped_stream, []) == 1
      assert call(peer, JobLibraryScenarios, :foreign_stream, []) == :badarg
      assert call(peer, JobLibraryScenarios, :forked_stream, []) == {{1}, {2}, :badarg}
    end

    test "is told from a value", %{peer: peer} do
      assert call(peer, JobLibraryScenarios, :raised, [:parts_as_value, [1, 2]]) ==
               {:tame, :is_a_stream}

      assert call(peer, JobLibraryScenarios, :empty_stream, []) == []
    end
  end

  describe "iodata" do
    for placement <- @on_schedulers do
      test "is read chunk by chunk, and the output grows: #{placement}", %{peer: peer} do
        for data <- [
              "",
              [],
              "one",
              ["", [], ["a", ?b | "c"], List.duplicate("twenty bytes of text", 50_000)],
              String.duplicate("large", 400_000)
            ] do
          flipped = call(peer, :flip, unquote(placement), [data])

          assert flipped ==
                   for(<<byte <- IO.iodata_to_binary(data)>>, into: <<>>, do: <<255 - byte>>)
        end

        for data <- [:none, [1, :two], [300]] do
          assert error(peer, :flip, unquote(placement), [data]) == {:badarg, 1, ~c"must be iodata"}
        end
      end
    end
  end

  describe "a context" do
    for placement <- @placements do
      test "is held by one call at a time, first come first served: #{placement}", %{peer: peer} do
        {befores, value} = call(peer, JobLibraryScenarios, :bumps, [unquote(placement), 12, 300])
        assert Enum.sort(befores) == for(n <- 0..11, do: n * 300)
        assert value == 12 * 300
      end
    end

    for placement <- @placements -- [:inline] do
      test "goes to who waits when its holder is killed: #{placement}", %{peer: peer} do
        assert call(peer, JobLibraryScenarios, :bump_after_death, [unquote(placement)]) == :saw
      end
    end

    test "lets two calls on two contexts run at the same time", %{peer: peer} do
      assert call(peer, JobLibraryScenarios, :two_contexts, []) == :both_at_once
    end

    test "is free again whenever its holders and those who wait die", %{peer: peer} do
      assert call(peer, JobLibraryScenarios, :bump_storm, []) == :free
    end

    test "of the wrong kind is refused, and the last term destroys it", %{peer: peer} do
      assert error(peer, :bump, :auto, [make_ref(), 1]) ==
               {:badarg, 1, ~c"must be a resource of this function's type, made in this VM"}

      assert call(peer, JobLibraryScenarios, :destroyed, []) == {3, 7}
    end

    test "lives as long as another that keeps it", %{peer: peer} do
      assert call(peer, JobLibraryScenarios, :kept, []) == {{3, 0}, 1, 3}
    end

    test "refuses an upgrade while it lives", %{peer: peer} do
      assert {{:error, :on_load_failure}, 5, :ok} = call(peer, JobLibraryScenarios, :upgrade, [])
    end

    @tag build: :keeps
    test "outlives an upgrade where its author says so", %{peer: peer} do
      assert {{:module, JobLibrary}, 5, :ok} = call(peer, JobLibraryScenarios, :upgrade, [])
    end

    @tag build: :keeps
    test "refuses the second upgrade as well", %{peer: peer, library: keepless} do
      assert {{:error, :on_load_failure}, 6} =
               call(peer, JobLibraryScenarios, :upgrade_twice, [to_charlist(keepless)])
    end
  end

  test "a deadline of the function, or of its caller if it is earlier", %{peer: peer} do
    for args <- [[:count_in_time, 60_000], [:count_pool, 20], [:count_yielding, 20]] do
      assert call(peer, JobLibraryScenarios, :in_time, args) == {:tame, :deadline}
    end

    # On a busy machine 20 ms may pass before a thread has a core; but not each time.
    assert Enum.any?(1..100, fn _ ->
             match?({[], _}, call(peer, JobLibraryScenarios, :in_20_ms, [10]))
           end)
  end

  test "a module without '$tame'/3 is refused", %{peer: peer, library: library} do
    assert {:error, {:bad_lib, text}} = call(peer, JobLibraryScenarios, :forgetful, [library])
    assert to_string(text) =~ "Function not found"
  end

  defp allowed(:inline), do: [1]
  defp allowed(:yielding), do: [1]
  defp allowed(:auto), do: [1, 3]
  defp allowed(_), do: [2]

  defp call(peer, job, placement, args) when is_atom(placement) and placement in @placements,
    do: :peer.call(peer, JobLibrary, :call, [job, placement, args], 600_000)

  defp call(peer, module, function, args), do: :peer.call(peer, module, function, args, 600_000)

  defp error(peer, job, placement, args),
    do: :peer.call(peer, JobLibraryScenarios, :raised, [:"#{job}_#{placement}", args], 600_000)
end
