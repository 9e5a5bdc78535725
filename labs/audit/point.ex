defmodule Tame.Audit.Point do
  @moduledoc """
  One size of input: turns what the peer saw (`tame_audit`) into figures. Pure.
  """

  @enforce_keys [:bytes]
  defstruct [
    :bytes,
    :elapsed_us,
    :longest_slice_us,
    :slice_kind,
    :longest_call_us,
    :charge_ratio,
    :neighbour_max_us,
    :call_neighbour_us,
    :loop_calls,
    :loop_slice_us,
    :loop_median_us,
    :loop_neighbour_us,
    :dirty_wait_max_us,
    :held,
    :descriptors
  ]

  @typedoc """
  Times in µs. `:elapsed_us` is that of the quickest call, `:longest_slice_us` the longest slice of the
  call from which the operating system took the least, because a call is slower when others have the machine and never quicker. `:longest_call_us` is how
  long one NIF was at work within a call, `:loop_*` is of calls in a row: all that the operating system took from the
  row is taken off its longest slice, which is a lower bound. `:held` is a `t:Tame.Audit.Held.t/0`, or nil, and
  `:descriptors` of the first size a `t:Tame.Audit.Leak.t/0`, or nil.
  `:charge_ratio` is reductions charged ÷ 4 for each µs used; nil of dirty work, which is not charged so.
  """
  @type t :: %__MODULE__{}

  @doc "The shape of a point in a saved report."
  @spec shape() :: Tame.Report.Shape.t()
  def shape do
    figures =
      ~w(longest_call_us charge_ratio call_neighbour_us loop_slice_us loop_neighbour_us dirty_wait_max_us)a

    figures
    |> Map.new(&{&1, {:maybe, :amount}})
    |> Map.merge(%{bytes: :count, elapsed_us: :amount, longest_slice_us: :amount, slice_kind: :text})
  end

  @doc "Figures of a size, from the readings of single calls, the reading of calls in a row or nil, the shares of a call that one NIF and garbage collections had, and a wait."
  @spec new(pos_integer(), [map()], nil | map(), map(), nil | non_neg_integer()) :: t()
  def new(bytes, [_ | _] = calls, loop, shares, dirty_wait_ns) do
    kind = kind(calls, shares.gc)
    elapsed_us = us(calls |> Enum.map(& &1.elapsed_ns) |> Enum.min())
    call_neighbour_us = us(calls |> Enum.map(&own(&1.neighbour_ns, &1, :normal)) |> Enum.min())
    loop_neighbour_us = loop && us(own(loop.neighbour_ns, loop, :normal))

    %__MODULE__{
      bytes: bytes,
      elapsed_us: elapsed_us,
      longest_slice_us: calls |> least_disturbed(kind) |> longest(kind) |> us(),
      slice_kind: kind,
      longest_call_us: if(shares.nif > 0, do: min(1.0, shares.nif) * elapsed_us),
      charge_ratio: if(kind == :normal, do: charge_ratio(loop || hd(calls))),
      call_neighbour_us: call_neighbour_us,
      neighbour_max_us: max(call_neighbour_us, loop_neighbour_us || 0),
      loop_calls: loop && loop.calls,
      loop_slice_us: loop && us(longest(loop, kind)),
      loop_median_us: loop && us(Map.fetch!(loop, kind).median_ns),
      loop_neighbour_us: loop_neighbour_us,
      dirty_wait_max_us: if(kind == :dirty and dirty_wait_ns != nil, do: us(dirty_wait_ns))
    }
  end

  # What garbage collections took on dirty schedulers is nothing that the function did there.
  defp kind(calls, gc) do
    of = fn key -> calls |> Enum.map(key) |> Enum.sum() end
    collected = gc * of.(& &1.elapsed_ns)
    if of.(& &1.dirty.total_ns) - collected > of.(& &1.normal.total_ns), do: :dirty, else: :normal
  end

  # To a millisecond; of those that are alike the one with the shorter slice.
  defp least_disturbed(calls, kind) do
    Enum.min_by(calls, fn call ->
      {div(Map.fetch!(call.stolen_ns, kind), 1_000_000), Map.fetch!(call, kind).longest_ns}
    end)
  end

  # What the operating system took may have been in the longest slice. Half of the slices are longer than the median.
  defp longest(reading, kind) do
    %{longest_ns: longest, median_ns: median} = Map.fetch!(reading, kind)
    longest |> own(reading, kind) |> max(min(median, longest))
  end

  defp own(ns, reading, kind), do: max(ns - Map.fetch!(reading.stolen_ns, kind), 0)

  defp charge_ratio(%{normal: %{total_ns: total_ns}, reductions: reductions} = reading) do
    Tame.Charge.ratio(reductions, own(total_ns, reading, :normal))
  end

  defp us(ns), do: ns / 1000
end
