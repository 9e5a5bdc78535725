defmodule Tame.Audit.Advice do
  @moduledoc """
  What to do about verdicts, in words for an issue report. Pure.

  By the talk's table: a NIF of up to 1 ms may be a normal one, up to 100 ms one that yields, above that one that yields on
  dirty schedulers.
  """

  alias Tame.Audit.{Point, Verdict}
  alias Tame.Duration

  @doc "The advice for a function with these points and verdicts; `target` is its name."
  @spec sentences(String.t(), [Point.t()], [Verdict.t()], pos_integer()) :: String.t()
  def sentences(target, points, verdicts, budget_us) do
    verdicts |> Enum.map(&one(&1, target, points, budget_us)) |> Enum.uniq() |> Enum.join(" ")
  end

  defp one({:well_behaved, _, _}, target, points, _budget_us) do
    case List.last(points) do
      %{slice_kind: :dirty} ->
        "#{target} holds no thread for long; nothing to do. So short, it could be a normal NIF as well."

      _ ->
        "#{target} shares its scheduler at every size tried; nothing to do."
    end
  end

  defp one({:blocks, above, slice_us, bytes}, target, points, budget_us) do
    "#{target} holds a scheduler for #{Duration.measured(slice_us)} on an input of #{bytes} bytes, and every process of that scheduler " <>
      "waits. Above about #{above} bytes it is over #{Duration.text(budget_us)}: #{placement(points)}, or bound the input."
  end

  defp one({:blocks_at_times, one_of, slice_us, _}, target, _points, _budget_us) do
    "#{target} holds a scheduler for at least #{Duration.measured(slice_us)} in 1 of #{one_of} calls, and every process of that scheduler waits: " <>
      "look for what it does only then (a buffer that is flushed, a table that grows, a lock), and cut that, or do it elsewhere."
  end

  defp one({:under_charges, call_us, _, _, _}, target, _points, _budget_us) do
    "#{target} takes #{Duration.measured(call_us)} a call and is charged next to nothing, so a loop of calls keeps its neighbours from " <>
      "running: charge for the time used with enif_consume_timeslice (1 % is 10 µs), and return through " <>
      "enif_schedule_nif when that says the slice is used up."
  end

  defp one({:dirty, held_us, bytes, _}, target, points, _budget_us) do
    "#{target} is dirty, so normal schedulers go on; but with as many callers as there are dirty threads, all other dirty work stops, " <>
      "including garbage collections of large heaps, for #{Duration.measured(held_us)} on #{bytes} bytes: #{placement(points)}, " <>
      "or limit how many call it at once."
  end

  defp one({:ignores_kill, stopped_us, _, _}, target, _points, _budget_us) do
    "#{target} goes on for #{Duration.measured(stopped_us)} when its caller is gone: look at enif_is_current_process_alive between steps, " <>
      "or yield, because the VM frees a call that waits for its turn."
  end

  defp one({:leaks, _, "descriptors", _, _}, target, _points, _budget_us),
    do: "#{target} keeps open what it opens: close it on every way out."

  defp one({:leaks, per_call, _, _, _}, target, _points, _budget_us) do
    "#{target} keeps about #{max(1, round(per_call))} bytes of each call: look for what is not freed on every way out (enif_free, " <>
      "enif_free_env, enif_release_binary, enif_release_resource after enif_make_resource, free)."
  end

  defp one({:inconclusive, up_to, _}, target, _points, _budget_us) do
    "What is said of #{target} holds up to #{up_to} bytes: expected an input that it takes at every size (--input-file), " <>
      "or a smaller --up-to."
  end

  defp one({:not_measured, what, _}, target, _points, _budget_us) do
    "Nothing is said of #{target} as to #{what}: expected an input that it takes each time (--input-file), a longer " <>
      "--limit, or a machine that has less to do."
  end

  defp one({:hangs, _, _}, target, _points, _budget_us) do
    "#{target} does not come back. Nothing ends it but the end of its VM: run it isolated (tame's isolate) with a deadline."
  end

  defp one({:crashes, _, how}, target, _points, _budget_us) do
    "#{target} ended the VM with #{how}: run it isolated (tame's isolate), where that is an exception in the caller."
  end

  @normal_us 1000
  @yielding_us 100_000

  defp placement(points) do
    case points |> Enum.map(& &1.elapsed_us) |> Enum.max(fn -> 0 end) do
      us when us <= @normal_us ->
        "up to 1 ms a normal NIF is right"

      us when us <= @yielding_us ->
        "a call of #{Duration.measured(us)} should yield (enif_schedule_nif each millisecond at most)"

      us ->
        "a call of #{Duration.measured(us)} should yield on dirty schedulers (enif_schedule_nif with a dirty flag, each millisecond)"
    end
  end
end
