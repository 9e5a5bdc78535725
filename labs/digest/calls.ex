defmodule Tame.Digest.Calls do
  @moduledoc "One call by the size of its input, by each way in turns."

  # No dependency of a project that has the labs: Tame.Digest.here?/0 asks for it.
  @compile {:no_warn_undefined, :tame_sha3}

  alias Tame.{Stats, Turns}

  @typedoc "One way with one size: the median of its turns, and their spread."
  @type row :: %{
          bytes: pos_integer(),
          way: String.t(),
          us: float(),
          spread_us: Stats.spread()
        }

  # A turn lasts a few milliseconds, or one call.
  @turn_bytes 2_000_000
  @call_bytes 1000

  # Beyond this a call takes long enough to be the same twice.
  @large 256 * 1_048_576

  @doc "Measures every way with an input of `bytes`."
  @spec measure(pos_integer(), pos_integer(), Turns.seed()) :: [row()]
  def measure(bytes, rounds, seed) do
    data = :binary.copy(<<0x5A>>, bytes)
    calls = max(1, div(@turn_bytes, max(bytes, @call_bytes)))
    rounds = if bytes > @large, do: 2, else: rounds

    turns =
      for {way, fun} <- Turns.all(ways(), rounds, seed) do
        {us, _} = :timer.tc(fn -> again(fun, data, calls) end)
        {way, us / calls}
      end

    by_way = Enum.group_by(turns, &elem(&1, 0), &elem(&1, 1))

    for {way, _} <- ways(), us = by_way[way] do
      %{bytes: bytes, way: way, us: Stats.median(us), spread_us: Stats.spread(us)}
    end
  end

  defp ways do
    [
      {"crypto", &:crypto.hash(:sha3_256, &1)},
      {"tame_sha3", &:tame_sha3.hash(:sha3_256, &1)},
      {"kt128", &:tame_sha3.kt128(&1, 32)}
    ]
  end

  defp again(_fun, _data, 0), do: :ok

  defp again(fun, data, calls) do
    fun.(data)
    again(fun, data, calls - 1)
  end
end
