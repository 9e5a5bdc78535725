defmodule Tame.ReductionsFixture do
  @moduledoc """
  A result of the reductions lab as the lab returns it: well-behaved and ill-behaved variants, one
  skipped, one failed. The figures are made up from typical runs.
  """

  # id, about, elapsed ms, slices, longest, p99.9, dirty slices, dirty longest, reductions, ratio,
  # neighbour p99 and max; times in µs but for the first.
  @variants [
    {"crypto_exor", "OTP's own, cut in Erlang",
     {751.0, 13_699, 4184.0, 920.0, 1, 1201.0, 54_809_892, 22.3, 2792.0, 3794.0}},
    {"exor_yielding", "in slices", {31.0, 297, 168.0, 131.0, 0, 0.0, 124_000, 1.01, 148.0, 231.0}},
    {"exor_dirty", "in one go, dirty CPU",
     {33.0, 2, 15.1, 15.1, 1, 33_400.0, 30_419, nil, 140.0, 210.0}},
    {"exor_pool", "the library's own threads", "skipped: there is no module tame_exor"},
    {"exor_wrong", "mine", "failed: what it returned is not the exclusive or of the two"},
    {"exor_classic", "by hand: the classic yielding form",
     {304.0, 187, 6534.0, 6371.0, 0, 0.0, 747_802, 0.64, 3920.0, 7922.0}},
    {"exor_loop", "by hand: one uncut loop",
     {33.5, 1, 33_500.0, 33_500.0, 0, 0.0, 8, 0.0, nil, nil}}
  ]

  @bytes 268_435_456

  @doc "The result; its `:system` is that of the latency lab's fixture."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.reductions",
      format: 1,
      system: Tame.LatencyFixture.result().system,
      warnings: [%{id: :too_few_wake_ups, text: "The neighbour's p99 rests on few wake-ups."}],
      bytes: @bytes,
      rounds: 3,
      seed: 7,
      command: "mix tame.reductions",
      floor: %{slice_cost_ns: 1543, neighbour_p99_us: 130.0, neighbour_max_us: 1063.0},
      variants: Enum.map(@variants, &variant/1),
      bursts: []
    }
  end

  @doc "The result with the variants of the given ids only."
  @spec only(map(), [String.t()]) :: map()
  def only(result, ids), do: %{result | variants: Enum.filter(result.variants, &(&1.id in ids))}

  @doc "The result with fields of one variant replaced."
  @spec update(map(), String.t(), map()) :: map()
  def update(result, id, fields) do
    %{
      result
      | variants: for(v <- result.variants, do: if(v.id == id, do: Map.merge(v, fields), else: v))
    }
  end

  defp variant({id, about, trouble}) when is_binary(trouble) do
    [status, reason] = String.split(trouble, ": ", parts: 2)

    keys =
      ~w(elapsed_us gb_per_s slices longest_slice_us p999_slice_us dirty_slices longest_dirty_slice_us)a ++
        ~w(reductions charge_ratio neighbour_p99_us neighbour_max_us page_faults scheduler_page_faults)a

    Map.new(keys, &{&1, nil})
    |> Map.merge(%{id: id, about: about, status: status, reason: reason})
    |> Map.merge(%{neighbour_wake_ups: 0, picture: [], left_out: 0, spread: %{}})
    |> with_fresh()
  end

  defp variant({id, about, figures}) do
    {ms, slices, longest, p999, dirty, dirty_longest, reductions, ratio, p99, max} = figures
    picture = picture(ms, min(slices, 200), longest, dirty_longest)

    %{
      id: id,
      about: about,
      status: "ok",
      reason: nil,
      elapsed_us: ms * 1000,
      gb_per_s: @bytes / ms / 1.0e6,
      slices: slices,
      longest_slice_us: longest,
      p999_slice_us: p999,
      dirty_slices: dirty,
      longest_dirty_slice_us: dirty_longest,
      reductions: reductions,
      charge_ratio: ratio,
      neighbour_wake_ups: if(max, do: round(3 * ms), else: 0),
      neighbour_p99_us: p99,
      neighbour_max_us: max,
      picture: picture,
      left_out: max(0, slices + dirty - length(picture)),
      page_faults: 12,
      scheduler_page_faults: 3,
      spread: %{elapsed_us: [ms * 950, ms * 1050]}
    }
    |> with_fresh()
  end

  defp with_fresh(row), do: Map.put(row, :fresh, Map.drop(row, [:id, :about, :status, :reason]))

  # The first slice is the longest; the others share the time that is left.
  defp picture(ms, count, longest_us, dirty_longest_us) do
    step_us = ms * 1000 / count

    normal =
      for i <- 0..(count - 1) do
        us = if i == 0, do: longest_us, else: min(longest_us, 0.9 * step_us)
        %{start_us: i * step_us, us: us, kind: "normal"}
      end

    dirty =
      if dirty_longest_us > 0,
        do: [%{start_us: longest_us, us: dirty_longest_us, kind: "dirty"}],
        else: []

    Enum.sort_by(normal ++ dirty, & &1.start_us)
  end
end
