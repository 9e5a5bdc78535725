defmodule Tame.Audit.Leak do
  @moduledoc """
  Whether calls keep memory: by what is in use after equal rounds of them (`tame_audit_memory`).

  A cache that fills, a table that grows by doubling and an allocator that takes a new carrier grow in some rounds and
  then no more; a leak grows by the same in every round. What looks like one is looked at again, in rounds of four times
  as many calls, before it is called one; and in rounds of eight times as many where every round grew a little. What
  grows by less than 16 KiB in such a round, a third of a second, is not told from what others take.

  Descriptors are counted in a few calls of their own: there may be so few that many calls leave none.
  """

  @typedoc "What a call keeps, how much of it, and how many calls in a row showed it."
  @type t :: %{per_call: float(), what: String.t(), calls: pos_integer()}

  @typedoc "Memory in use, by who gave it out; see `tame_audit_process`."
  @type memory :: %{(:erlang | :malloc | :process | :descriptors) => non_neg_integer() | :undefined}

  @rounds 6
  # The first of them fill caches.
  @judged 4
  @again 4
  @again_little 8

  # A round takes about this long, and has no more calls than this.
  @round_us 40_000
  @most_calls 20_000
  @least_calls 10

  # Growth of a round that may be somebody else's. The operating system counts pages, of which allocators keep free ones.
  @noise_bytes %{erlang: 16_384, malloc: 16_384, process: 524_288}

  # By which a call may be told from a little growth that is somebody else's.
  @little_bytes %{erlang: 64, malloc: 64}

  @descriptor_calls 10

  # No round grows by less than this share of the one that grew most.
  @alike 0.5

  @doc "Calls `rounds` with how many calls and rounds it is to make, as often as it takes; its error is the answer."
  @spec look(number(), (map() -> {:ok, [memory()]} | {:error, term()})) ::
          {:ok, nil | t()} | {:error, term()}
  def look(elapsed_us, rounds) do
    calls = calls(elapsed_us)

    with {:ok, first} <- rounds.(%{calls: calls, rounds: @rounds}),
         {:again, more} <- again(first, calls),
         {:ok, seen} <- rounds.(%{calls: more, rounds: @rounds}) do
      {:ok, judge(seen, more)}
    end
  end

  defp again(readings, calls) do
    cond do
      judge(readings, calls) != nil -> {:again, @again * calls}
      judge(readings, calls, @little_bytes) != nil -> {:again, @again_little * calls}
      true -> {:ok, nil}
    end
  end

  @doc "Whether calls keep descriptors; as look/2."
  @spec descriptors((map() -> {:ok, [memory()]} | error)) :: {:ok, nil | t()} | error
        when error: term()
  def descriptors(rounds) do
    with {:ok, readings} <- rounds.(%{calls: @descriptor_calls, rounds: @rounds}) do
      case readings |> Enum.map(&Map.get(&1, :descriptors)) |> steady(1) do
        growth when growth > 0 ->
          calls = @judged * @descriptor_calls
          {:ok, %{per_call: growth / @descriptor_calls, what: "descriptors", calls: calls}}

        _ ->
          {:ok, nil}
      end
    end
  end

  @doc """
  How many calls a round has, of a call that takes that long.

      iex> Enum.map([0.4, 30.0, 90_000.0], &Tame.Audit.Leak.calls/1)
      [20000, 1333, 10]
  """
  @spec calls(number()) :: pos_integer()
  def calls(elapsed_us) do
    trunc(@round_us / max(elapsed_us, 0.1)) |> min(@most_calls) |> max(@least_calls)
  end

  @doc """
  What the memory after equal rounds of that many calls comes to.

      iex> in_use = fn all -> for bytes <- all, do: %{erlang: bytes} end
      iex> Tame.Audit.Leak.judge(in_use.([900_000, 940_000, 980_000, 1_020_000, 1_060_000, 1_100_000]), 1000)
      %{per_call: 40.0, what: "bytes", calls: 4000}

      iex> in_use = fn all -> for bytes <- all, do: %{erlang: bytes} end
      iex> Tame.Audit.Leak.judge(in_use.([900_000, 940_000, 980_000, 1_020_000, 1_020_000, 1_020_000]), 1000)
      nil
  """
  @spec judge([memory()], pos_integer()) :: nil | t()
  def judge(readings, calls), do: judge(readings, calls, @noise_bytes)

  defp judge(readings, calls, noise_bytes) do
    noise_bytes
    |> Enum.map(fn {who, noise} ->
      readings |> Enum.map(&Map.get(&1, who)) |> steady(noise)
    end)
    |> Enum.max()
    |> case do
      growth when growth > 0 -> %{per_call: growth / calls, what: "bytes", calls: @judged * calls}
      _ -> nil
    end
  end

  # The mean growth of the rounds that count, or 0 where they are not alike.
  defp steady(in_use, noise) do
    growth =
      if Enum.all?(in_use, &is_integer/1),
        do: in_use |> Enum.zip_with(tl(in_use), &(&2 - &1)) |> Enum.take(-@judged),
        else: [0]

    {least, most} = Enum.min_max(growth)
    if least >= noise and least >= @alike * most, do: Enum.sum(growth) / length(growth), else: 0
  end
end
