defmodule Tame.JobResults do
  @moduledoc """
  A job whose result is whatever the test asks for, in every placement: terms of the sizes at which the
  emulator changes how it builds them, and exceptions. `natives/job_results_nif.c` has the C side.
  """

  use Tame.Job

  @on_load :load

  # A list of 10^6 takes 20 ms to build, so it comes once per placement and not more.
  @terms for(n <- [0, 1, 32, 33, 128, 129, 1000, 2000, 100_000], do: {:map, n}) ++
           for(n <- [0, 1, 1_000_000], do: {:list, n}) ++
           for(n <- [0, 1, 65_536], do: {:tuple, n}) ++
           for(n <- [0, 63, 64, 65, 1_048_576], do: {:binary, n})

  def load do
    case :os.getenv(~c"TAME_PROBE_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end

  defjob(auto(us, what, with))
  defjob(inline(us, what, with))
  defjob(yielding(us, what, with))
  defjob(dirty_cpu(us, what, with))
  defjob(dirty_io(us, what, with))
  defjob(yielding_dirty(us, what, with))
  defjob(thread(us, what, with))
  defjob(pool(us, what, with))

  @doc "Which of the results are not as they should be in this placement, after a run of that number of µs: []."
  def differences(placement, us) do
    made = for {what, n} <- @terms, do: {what, n, term(what, n)}

    decoded =
      for term <- [Bitwise.bsl(1, 80_000), -Bitwise.bsl(1, 64), term(:map, 129), nested(200)],
          do: {:decoded, :erlang.term_to_binary(term), term}

    for {what, with, expected} <- made ++ decoded ++ [{:same, made, made}, {:self, 0, self()}],
        got = apply(__MODULE__, placement, [us, what, with]),
        got != expected or is_map(got) != is_map(expected) do
      {what, if(is_integer(with), do: with)}
    end
  end

  @doc "The error, and the frame it is raised from, of a result that is an exception."
  def raised(placement, us, what, with) do
    apply(__MODULE__, placement, [us, what, with])
  rescue
    error ->
      [{m, f, args, _} | _] = __STACKTRACE__
      {Exception.message(error), {m, f, args}}
  end

  @doc "Reductions of a call."
  def reductions(placement, us, what, with) do
    {:reductions, before} = Process.info(self(), :reductions)
    _ = apply(__MODULE__, placement, [us, what, with])
    {:reductions, later} = Process.info(self(), :reductions)
    later - before
  end

  defp term(:map, 0), do: %{}
  defp term(:map, n), do: Map.new(0..(n - 1), &{&1, &1})
  defp term(:list, 0), do: []
  defp term(:list, n), do: Enum.to_list(0..(n - 1))
  defp term(:tuple, n), do: List.to_tuple(term(:list, n))
  defp term(:binary, n), do: for(i <- term(:list, n), into: <<>>, do: <<i::8>>)

  # A map of maps, each large enough to be a tree.
  defp nested(n), do: Map.new(1..n, &{&1, Map.new(1..40, fn key -> {key, &1} end)})
end
