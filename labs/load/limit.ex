defmodule Tame.Load.Limit do
  @moduledoc """
  The highest rate of jobs at which hello stays within its bound, by placement, and what is beyond it.

  The rate is doubled, each time in a VM of its own, until hello's p99 leaves the bound, more than 1 % of hello is refused or
  fails, or jobs are answered slower than they are asked for. Then comes twice the highest rate that was held.
  """

  alias Tame.Load.{Plan, Verdict}
  alias Tame.Turns

  # From a sixteenth of what all cores can do to eight times of it.
  @most_steps 8

  # A smaller share of answers that came while jobs were asked for, or shortly after, means that a queue grows.
  @keeps_up 0.9

  @type run_cell :: (map(), Plan.placement(), pos_integer(), pos_integer(), pos_integer() -> map())

  @doc "The row of each placement of the plan, with the longest job of up to 10 ms."
  @spec all(map(), run_cell()) :: [map()]
  def all(plan, run_cell) do
    us = job_us(plan.jobs)
    search = Plan.search(plan.which)
    placements = Enum.filter(plan.placements, & &1.function)
    turns = placements |> Enum.with_index() |> Turns.all(1, plan.seed)

    turns
    |> Enum.with_index()
    |> Enum.map(fn {{placement, place}, done} ->
      plan.progress.(%{what: "limit of #{placement.id}", done: done, total: length(turns)})
      cell = fn rate -> run_cell.(plan, placement, us, rate, search.step_ms) end
      first = Plan.job_rate(us, search.first_percent, plan.facts.cores)
      {place, %{placement: placement.id, job_us: us} |> Map.merge(one(cell, first, plan.bound_us))}
    end)
    |> Enum.sort()
    |> Enum.map(&elem(&1, 1))
  end

  @doc """
  Which job is meant.

      iex> Enum.map([[0, 1000, 10_000, 100_000], [100_000]], &Tame.Load.Limit.job_us/1)
      [10_000, 100_000]
  """
  @spec job_us([non_neg_integer()]) :: pos_integer()
  def job_us(jobs) do
    jobs = Enum.reject(jobs, &(&1 == 0))
    jobs |> Enum.filter(&(&1 <= 10_000)) |> Enum.max(fn -> Enum.min(jobs, fn -> 10_000 end) end)
  end

  @doc "Doubles the rate from `rate` on. `cell` runs one, and returns its figures."
  @spec one((pos_integer() -> map()), pos_integer(), pos_integer()) :: map()
  def one(cell, rate, bound_us) do
    {steps, held} = steps(cell, rate, bound_us, [])
    failed = Enum.find(steps, &(&1.status != "ok"))
    last = if held, do: 2 * held.rate, else: rate

    over =
      case Enum.find(steps, &(&1.rate == last)) do
        nil -> step(cell.(min(last, Plan.most_rate())), last)
        step -> step
      end

    %{
      status: if(failed, do: failed.status, else: "ok"),
      reason: failed && failed.reason,
      held_per_s: held && held.rate,
      held_p99_us: held && held.hello_p99_us,
      steps: steps,
      overload: over
    }
  end

  defp steps(cell, rate, bound_us, done) do
    step = step(cell.(rate), rate)

    cond do
      not held?(step, bound_us) ->
        {Enum.reverse([step | done]), List.first(done)}

      length(done) + 1 >= @most_steps or 2 * rate > Plan.most_rate() ->
        {Enum.reverse([step | done]), step}

      true ->
        steps(cell, 2 * rate, bound_us, [step | done])
    end
  end

  defp held?(%{status: "ok", hello_p99_us: us} = step, bound_us) when us != nil,
    do: us <= bound_us and not Verdict.lost?(step) and step.in_time >= @keeps_up

  defp held?(_step, _bound_us), do: false

  defp step(cell, rate) do
    %{
      rate: rate,
      status: cell.status,
      reason: cell.reason,
      hello_p99_us: cell.hello_p99_us,
      hello_planned: cell.hello_planned,
      hello_refused: cell.hello_refused,
      hello_failed: cell.hello_failed,
      answered_per_s: cell.job_answered_per_s || 0.0,
      in_time: cell.job_in_time || 0.0,
      sent: cell.job_sent,
      refused: cell.job_refused,
      failed: cell.job_failed,
      recovered_ms: cell.recovered_ms
    }
  end
end
