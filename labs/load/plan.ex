defmodule Tame.Load.Plan do
  @moduledoc """
  What the load lab measures when nothing else is asked for: placements, jobs, rates, times. Pure.
  """

  @typedoc "A placement as `tame_spin` has it; `nothing` answers a request for a job at once. A pool has a short queue, as a server's has."
  @type placement :: %{id: String.t(), function: nil | atom()}

  @placements [
    nothing: nil,
    inline: :spin_inline,
    yielding: :spin_yielding,
    yielding_dirty: :spin_yielding_dirty,
    dirty_cpu: :spin_dirty,
    thread: :spin_thread,
    pool: :spin_bounded,
    auto: :spin
  ]

  # Jobs a second that cost nothing have no capacity that a rate could be a share of.
  @nothing_rate 2000
  @most_rate 20_000

  # Requests that may be under way at once. HTTP/1.1 has one on a connection.
  @jobs %{h1: {200, 1}, h2: {20, 10}}
  @hello %{h1: {32, 1}, h2: {4, 16}}

  # A bound that a person would not notice, beside what else a page needs.
  @bound_us 10_000

  @doc "Every placement, in the order of tables."
  @spec placements() :: [placement()]
  def placements,
    do: for({id, function} <- @placements, do: %{id: to_string(id), function: function})

  @doc """
  The placements with these ids.

      iex> Tame.Load.Plan.fetch(["inline", "inlin"])
      {:error, "--placements inlin: expected some of nothing, inline, yielding, yielding_dirty, dirty_cpu, thread, pool, auto"}
  """
  @spec fetch([String.t()]) :: {:ok, [placement()]} | {:error, String.t()}
  def fetch(ids) do
    known = Enum.map(placements(), & &1.id)

    case ids -- known do
      [] -> {:ok, Enum.filter(placements(), &(&1.id in ids))}
      [id | _] -> {:error, "--placements #{id}: expected some of #{Enum.join(known, ", ")}"}
    end
  end

  @doc "What is measured when nothing is said, in µs of a job."
  @spec jobs(:quick | :default) :: [non_neg_integer()]
  def jobs(:quick), do: [10_000]
  def jobs(:default), do: [0, 1_000, 10_000, 100_000]

  @doc "The ids of the placements when none are asked for."
  @spec ids(:quick | :default) :: [String.t()]
  def ids(:quick), do: ~w(inline yielding dirty_cpu pool)
  def ids(:default), do: Enum.map(placements(), & &1.id)

  @doc "Times of a cell in ms: before the jobs, while they are asked for, after them, and until an answer is given up."
  @spec times(pos_integer()) :: map()
  def times(for_ms), do: %{lead_ms: 500, for_ms: for_ms, tail_ms: 1500, wait_ms: 3000}

  @doc "For how long jobs are asked for, in ms."
  @spec for_ms(:quick | :default) :: pos_integer()
  def for_ms(:quick), do: 2500
  def for_ms(:default), do: 5000

  @doc "Where the search for a limit begins, in per cent of what all cores can do, and for how long each rate is asked for."
  @spec search(:quick | :default) :: %{first_percent: number(), step_ms: pos_integer()}
  def search(:quick), do: %{first_percent: 25, step_ms: 1000}
  def search(:default), do: %{first_percent: 6.25, step_ms: 2000}

  @doc "What hello's p99 may be."
  @spec bound_us() :: pos_integer()
  def bound_us, do: @bound_us

  @doc """
  Jobs a second that take that percentage of the time of all cores.

      iex> Tame.Load.Plan.job_rate(10_000, 200, 2)
      400
  """
  @spec job_rate(non_neg_integer(), number(), pos_integer()) :: pos_integer()
  def job_rate(0, _percent, _cores), do: @nothing_rate

  def job_rate(job_us, percent, cores) do
    (cores * percent * 10_000 / job_us) |> round() |> max(1) |> min(@most_rate)
  end

  @doc "The most that can be asked for."
  @spec most_rate() :: pos_integer()
  def most_rate, do: @most_rate

  @doc "How many connections a client has, with how many requests on each."
  @spec connections(:hello | :jobs, :h1 | :h2) :: %{
          connections: pos_integer(),
          streams: pos_integer()
        }
  def connections(:hello, protocol), do: pair(@hello[protocol])
  def connections(:jobs, protocol), do: pair(@jobs[protocol])

  defp pair({connections, streams}), do: %{connections: connections, streams: streams}

  @doc """
  The cells: each placement with each job that is longer than nothing, and `nothing` once.

      iex> {:ok, placements} = Tame.Load.Plan.fetch(["nothing", "inline"])
      iex> for {placement, us} <- Tame.Load.Plan.cells(placements, [0, 1000, 10_000]), do: {placement.id, us}
      [{"nothing", 0}, {"inline", 1000}, {"inline", 10_000}]
  """
  @spec cells([placement()], [non_neg_integer()]) :: [{placement(), non_neg_integer()}]
  def cells(placements, jobs) do
    for us <- Enum.sort(Enum.uniq(jobs)),
        placement <- placements,
        us == 0 == (placement.function == nil),
        do: {placement, us}
  end

  @doc "What `:tame_load_work.set/1` takes."
  @spec work(placement(), non_neg_integer()) :: :nothing | {:tame_spin, atom(), [pos_integer()]}
  def work(%{function: nil}, _us), do: :nothing
  def work(%{function: function}, us), do: {:tame_spin, function, [us]}
end
