defmodule Tame.JobResultsTest do
  # `result` runs on a scheduler of the caller's, wherever the steps ran: the same term everywhere, of any size, and
  # an exception is one. In a VM of its own, because what this asks for ends one whose results are made elsewhere.
  use ExUnit.Case, async: true

  alias Tame.{JobProbe, JobResults}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared

  @placements JobProbe.placements()

  # µs of work: none, more than a slice, and for auto enough to move to the pool.
  @runs for(placement <- @placements, us <- [0, 400], do: {placement, us}) ++ [{:auto, 130_000}]

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{library: JobProbe.build(folder, "job_results")}
  end

  setup %{library: library} do
    env = [{~c"TAME_PROBE_LIBRARY", to_charlist(library)}]
    %{peer: Tame.Test.PeerVm.start(%{env: env})}
  end

  for {placement, us} <- @runs do
    test "a result is the same, of any size: #{placement}, #{us} µs", %{peer: peer} do
      assert call(peer, :differences, [unquote(placement), unquote(us)]) == []
    end

    test "an exception is one: #{placement}, #{us} µs", %{peer: peer} do
      for {what, with, message} <- [
            {:raise, :reason, "Erlang error: :reason"},
            {:raise, {:reason, Enum.to_list(1..1000)}, nil},
            {:map, :no_number, "argument error"},
            {:decoded, "no term", "argument error"}
          ] do
        assert {said, at} = call(peer, :raised, [unquote(placement), unquote(us), what, with])
        if message, do: assert(said =~ message)
        # The frame is the user's call, or the NIF's, and holds nothing that the call owned.
        assert {JobResults, function, args} = at
        assert function in [unquote(placement), unquote(:"#{placement}_nif")]
        assert args in [3, [unquote(us), what, with]]
      end

      assert call(peer, unquote(placement), [0, :same, :alive]) == :alive
    end
  end

  test "a large result is charged to the caller that gets it", %{peer: peer} do
    for placement <- [:inline, :yielding, :auto, :thread, :pool] do
      # 10^6 elements take several ms anywhere, at 4000 reductions each; the call itself takes less than 1000.
      assert {placement, call(peer, :reductions, [placement, 0, :list, 1_000_000]) > 4000} ==
               {placement, true}
    end
  end

  defp call(peer, function, args), do: :peer.call(peer, JobResults, function, args, 600_000)
end
