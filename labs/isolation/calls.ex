defmodule Tame.Isolation.Calls do
  @moduledoc """
  Calls by size: the latency lab's methods that stand for the ways to keep native code off a normal scheduler, in the
  latency lab's turns. In each round each of them takes one for each size.
  """

  alias Tame.{Latency, Stats}
  alias Tame.Latency.Methods

  @methods [Methods.Isolated, Methods.NIFDirtyCPU, Methods.Port]

  @typedoc "One method with one size; `nil` where it was not measured. The spread is that of its rounds' medians."
  @type row :: %{
          bytes: non_neg_integer(),
          method: String.t(),
          isolation: String.t(),
          status: String.t(),
          reason: nil | String.t(),
          count: non_neg_integer(),
          p50_us: nil | float(),
          p50_spread_us: nil | Stats.spread(),
          p99_us: nil | float()
        }

  @doc "The ids of the methods."
  @spec ids() :: [String.t()]
  def ids, do: for(method <- @methods, do: Atom.to_string(method.describe().id))

  @doc "Measures `iterations` calls by each method with a binary of each size."
  @spec measure(
          [non_neg_integer()],
          pos_integer(),
          pos_integer(),
          non_neg_integer(),
          (map() ->
             any())
        ) ::
          [row()]
  def measure(sizes, iterations, rounds, seed, progress) do
    terms = for bytes <- sizes, do: :binary.copy(<<1>>, bytes)
    parts = length(sizes)
    # The last two parts of the lab are counted as one size each.
    step = &progress.(%{&1 | done: parts * &1.done, total: (parts + 2) * &1.total})
    rows = Latency.rows(@methods, terms, iterations, rounds, seed, step)

    for {bytes, methods} <- Enum.zip(sizes, rows), method <- methods do
      %{
        bytes: bytes,
        method: method.id,
        isolation: method.isolation,
        status: method.status,
        reason: method.reason,
        count: method.count,
        p50_us: method.p50_us,
        p50_spread_us: method.p50_spread_us,
        p99_us: method.p99_us
      }
    end
  end
end
