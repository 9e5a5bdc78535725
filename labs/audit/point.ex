defmodule Tame.Audit.Point do
  @moduledoc """
  One size of input: turns what the peer saw (`tame_audit`) into figures. Pure.
  """

  @enforce_keys [:bytes]
  defstruct [
    :bytes,
    :calls,
    :elapsed_us,
    :longest_slice_us,
    :slice_kind,
    :other_slice_us,
    :second_slice_us,
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
  Times in µs, of `:calls` single calls. `:elapsed_us` and the slices are of one call: that from which the operating system took the least, because
  a call is slower when others have the machine and never quicker. `:longest_slice_us` is of the kind of scheduler on which
  it did most; `:other_slice_us` is chosen alike of the other kind, nil where it did nothing there; `:second_slice_us` is the longest slice
  of any other call, with all that the operating system took, nil where there was one call. `:longest_call_us` is how
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
    call = least_disturbed(calls, kind)
    elapsed_us = us(call.elapsed_ns)
    call_neighbour_us = us(calls |> Enum.map(&own(&1.neighbour_ns, &1, :normal)) |> Enum.min())
    loop_neighbour_us = loop && us(own(loop.neighbour_ns, loop, :normal))

    %__MODULE__{
      bytes: bytes,
      calls: length(calls),
      elapsed_us: elapsed_us,
      longest_slice_us: us(longest(call, kind)),
      slice_kind: kind,
      other_slice_us: other_slice_us(calls, kind, shares.gc),
      second_slice_us: second_slice_us(List.delete(calls, call), kind),
      longest_call_us: if(shares.nif > 0, do: min(1.0, shares.nif) * elapsed_us),
      charge_ratio: if(kind == :normal, do: charge_ratio(loop || call)),
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

  # What was taken from one kind of schedulers says nothing of the other.
  defp other_slice_us(calls, :dirty, _gc) do
    call = least_disturbed(calls, :normal)
    if call.normal.total_ns > 0, do: us(longest(call, :normal))
  end

  # A dirty slice may be a garbage collection: of what is mostly that, nothing is the function's.
  defp other_slice_us(calls, :normal, gc) do
    call = least_disturbed(calls, :dirty)
    collected_ns = gc * call.elapsed_ns
    if collected_ns < call.dirty.total_ns / 2, do: us(max(longest(call, :dirty) - collected_ns, 0))
  end

  defp second_slice_us([], _kind), do: nil

  defp second_slice_us(others, kind),
    do: others |> Enum.map(&Map.fetch!(&1, kind).longest_ns) |> Enum.max() |> us()

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
