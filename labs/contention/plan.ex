defmodule Tame.Contention.Plan do
  @moduledoc """
  What the contention lab runs: placements, durations and multipliers, and how long it looks at each cell.

  A placement is data: an `:id`, the `:function` that keeps a CPU busy for a number of microseconds, and a
  description. `threads?` says whether each call makes a thread.
  """

  alias Tame.Duration

  @type placement :: %{
          required(:id) => String.t(),
          required(:function) => {module(), atom()},
          required(:about) => String.t(),
          optional(:threads?) => boolean()
        }

  @placements [
    %{id: "inline", function: {:tame_spin, :spin_inline}, about: "in one go on the scheduler"},
    %{
      id: "thousand_cuts",
      function: {:tame_thousand_cuts, :cuts},
      about: "by hand: plain NIF calls of 1 ms in a row, uncharged"
    },
    %{id: "dirty_cpu", function: {:tame_spin, :spin_dirty}, about: "in one go, dirty CPU"},
    %{id: "yielding", function: {:tame_spin, :spin_yielding}, about: "in slices"},
    %{
      id: "yielding_dirty",
      function: {:tame_spin, :spin_yielding_dirty},
      about: "in slices, dirty CPU"
    },
    %{
      id: "thread",
      function: {:tame_spin, :spin_thread},
      about: "a thread for each call",
      threads?: true
    },
    %{id: "pool", function: {:tame_spin, :spin_pool}, about: "the library's own threads"},
    %{id: "auto", function: {:tame_spin, :spin}, about: "decides while it runs"},
    %{
      id: "driver_inline",
      function: {:tame_spin_driver, :spin_inline},
      about: "by hand: a port driver that computes in control"
    },
    %{
      id: "driver_async",
      function: {:tame_spin_driver, :spin_async},
      about: "a port driver, the VM's asynchronous threads (+A 1)"
    },
    %{
      id: "driver_dirty",
      function: {:tame_spin_driver, :spin_dirty},
      about: "a port driver, threads of its own"
    },
    %{id: "erlang", function: {:tame_loop, :loop}, about: "a busy loop in Erlang, the control"}
  ]

  @durations ~w(1ms 10ms 100ms 1s 10s)
  @full ~w(100s)
  @multipliers [1, 10, 100, 1000, 10_000]

  # What a corner shows: one job a scheduler or many, short or long.
  @quick_durations ~w(1ms 100ms)
  @quick_multipliers [1, 100]

  # A thread that wants a CPU takes its share of all of them from everybody on the machine, this lab
  # included: a thousand for each CPU leave a millisecond a second to each.
  @threads_per_core 1000

  # A process that waits in a native call, its resource, its monitor, and what the allocators keep.
  @process_bytes 8_000

  # The emulator, natives, two copies of a heap of 50 MB.
  @peer_bytes 250_000_000

  @doc "All placements, in the order of the tables."
  @spec placements() :: [placement()]
  def placements, do: @placements

  @doc "The default durations in µs; `full` adds the longest."
  @spec durations(:default | :full | :quick) :: [pos_integer()]
  def durations(which) do
    texts =
      case which do
        :default -> @durations
        :full -> @durations ++ @full
        :quick -> @quick_durations
      end

    for text <- texts, {:ok, us} = Duration.parse(text), do: us
  end

  @doc "The default multipliers: jobs for each scheduler."
  @spec multipliers(:default | :full | :quick) :: [pos_integer()]
  def multipliers(:quick), do: @quick_multipliers
  def multipliers(_), do: @multipliers

  @doc """
  The placements with the given ids, in the order of `placements/0`.

      iex> Tame.Contention.Plan.fetch(["yielding", "nope"])
      {:error, ~s(unknown placement "nope", expected some of: inline, thousand_cuts, dirty_cpu, yielding, yielding_dirty, thread, pool, auto, driver_inline, driver_async, driver_dirty, erlang)}
  """
  @spec fetch([String.t()]) :: {:ok, [placement()]} | {:error, String.t()}
  def fetch(ids) do
    known = Enum.map(@placements, & &1.id)

    case Enum.find(ids, &(&1 not in known)) do
      nil ->
        {:ok, Enum.filter(@placements, &(&1.id in ids))}

      id ->
        {:error, "unknown placement #{inspect(id)}, expected some of: #{Enum.join(known, ", ")}"}
    end
  end

  @doc """
  Durations as people write them, in µs.

      iex> Tame.Contention.Plan.parse_durations(["500us", "1ms", "2s"])
      {:ok, [500, 1000, 2_000_000]}

      iex> Tame.Contention.Plan.parse_durations(["0ms"])
      {:error, "duration 0ms: expected a whole number above 0 with us, ms or s, at most 1000s"}
  """
  @spec parse_durations([String.t()]) :: {:ok, [pos_integer()]} | {:error, String.t()}
  def parse_durations(texts), do: parse(texts, &Duration.parse/1)

  @doc """
  Multipliers: jobs for each scheduler.

      iex> Tame.Contention.Plan.parse_multipliers(["1", "100"])
      {:ok, [1, 100]}

      iex> Tame.Contention.Plan.parse_multipliers(["10x"])
      {:error, "multiplier 10x: expected a whole number above 0"}
  """
  @spec parse_multipliers([String.t()]) :: {:ok, [pos_integer()]} | {:error, String.t()}
  def parse_multipliers(texts), do: parse(texts, &multiplier/1)

  @doc """
  Whether a machine can hold the cells asked for, before any of them runs. `facts` are the peer's, `available` is
  free memory in bytes.
  """
  @spec fits([pos_integer()], map(), non_neg_integer()) :: :ok | {:error, String.t()}
  def fits(multipliers, facts, available) do
    most = Enum.max(multipliers)
    jobs = most * facts.schedulers
    needed = @peer_bytes + jobs * @process_bytes

    cond do
      jobs > facts.process_limit - 1000 ->
        {:error,
         "multiplier #{most}: #{jobs} jobs are more processes than the peer node may have " <>
           "(#{facts.process_limit}); ask for more with --erl \"+P #{2 * jobs}\""}

      needed > available ->
        {:error,
         "multiplier #{most}: #{jobs} jobs need about #{mb(needed)} MB of memory, #{mb(available)} MB are free"}

      true ->
        :ok
    end
  end

  @doc "Why a cell is not run at all, or nil."
  @spec refusal(placement(), pos_integer(), map()) :: nil | String.t()
  def refusal(placement, jobs, facts) do
    most = @threads_per_core * facts.cores

    if placement[:threads?] && jobs > most do
      "not run: #{jobs} threads at once, the lab makes at most #{most} (#{@threads_per_core} for each core), " <>
        "because they take the CPUs from everything on this machine"
    end
  end

  @doc """
  How the lab looks at a cell: times in ms for `tame_contention:run/3`. A flood of short jobs is repeated
  until `window_ms` are over, one that is not done after `limit_ms` is stopped.
  """
  @spec times(pos_integer(), :default | :full | :quick) :: map()
  def times(duration_us, which) do
    {lead_ms, window_ms, limit_ms, tail_ms} =
      case which do
        :quick -> {250, 400, 1000, 100}
        _ -> {250, 1000, 3000, 250}
      end

    %{
      lead_ms: lead_ms,
      window_ms: window_ms,
      # A job of one second is not done in less.
      limit_ms: max(limit_ms, div(duration_us, 1000) + 2000 * min(1, div(duration_us, 1_000_000))),
      tail_ms: tail_ms,
      sample_ms: 250,
      neighbour_ms: 10,
      dirty_ms: 100,
      # Copying 50 MB takes some 30 ms, so it is done once before the flood and once in it.
      gc_ms: 10_000,
      gc_second_ms: lead_ms + 100
    }
  end

  defp parse(texts, read) do
    Enum.reduce_while(texts, {:ok, []}, fn text, {:ok, values} ->
      case read.(text) do
        {:ok, value} -> {:cont, {:ok, Enum.uniq(values ++ [value])}}
        {:error, why} -> {:halt, {:error, why}}
      end
    end)
  end

  defp multiplier(text) do
    case Integer.parse(text) do
      {value, ""} when value > 0 -> {:ok, value}
      _ -> {:error, "multiplier #{text}: expected a whole number above 0"}
    end
  end

  defp mb(bytes), do: div(bytes, 1_000_000)
end
