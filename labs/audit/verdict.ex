defmodule Tame.Audit.Verdict do
  @moduledoc """
  What the figures of a function come to. Pure.

  Several verdicts may hold; each carries the numbers that show it.
  """

  alias Tame.Audit.{Growth, Point}
  alias Tame.{Duration, Number}

  @type t ::
          {:well_behaved, slice_us :: number(), bytes :: pos_integer()}
          | {:blocks, above_bytes :: pos_integer(), slice_us :: number(), bytes :: pos_integer()}
          | {:blocks_at_times, one_of_calls :: pos_integer(), slice_us :: number(),
             bytes :: pos_integer()}
          | {:under_charges, call_us :: number(), slice_us :: number(), late_us :: number(),
             ratio :: number() | nil}
          | {:dirty, held_us :: number(), bytes :: pos_integer(), waited_us :: number() | nil}
          | {:ignores_kill, after_us :: number(), call_us :: number(), bytes :: pos_integer()}
          | {:leaks, per_call :: number(), what :: String.t(), calls :: pos_integer(),
             bytes :: pos_integer()}
          | {:inconclusive, up_to_bytes :: pos_integer(), why :: String.t()}
          | {:not_measured, what :: String.t(), why :: String.t()}
          | {:hangs, bytes :: pos_integer(), limit_us :: pos_integer()}
          | {:crashes, bytes :: pos_integer(), how :: String.t()}

  # Each verdict of the type once, as mix tame.audit's help has it: its words and what they mean. A check of `--ci` holds
  # with one that is `:good` and may allow one that is `:allowable`; one that is a `:failure` is the audit's failure too.
  @meanings [
    well_behaved: {:good, "well-behaved", "no slice clearly above the budget, alone or in a row"},
    blocks:
      {:allowable, "blocks above N bytes", "one slice is longer than the budget from that size on"},
    blocks_at_times:
      {:allowable, "blocks now and then",
       "one of several calls is longer than the budget, and the others are short"},
    under_charges:
      {:allowable, "under-charges",
       "no call is long, and a row of them holds the scheduler all the same"},
    dirty:
      {:allowable, "dirty, holds its thread for T at N bytes",
       "normal schedulers go on, other dirty work waits"},
    ignores_kill:
      {:allowable, "ignores a killed caller", "the work went on when the caller was killed"},
    leaks:
      {:allowable, "leaks N bytes a call",
       "memory grows with every call, and does not stop growing; or descriptors do"},
    inconclusive:
      {:allowable, "inconclusive above N bytes",
       "a larger size could not be measured, and what is said holds up to there"},
    not_measured:
      {:allowable, "not measured",
       "it could not be seen whether it leaks, or what becomes of a killed caller"},
    hangs: {:failure, "does not return", "its VM was ended at the limit"},
    crashes: {:failure, "crashes", "it ended its VM"}
  ]

  # A slice must be clearly over the budget once: one that yields each millisecond is over it by some per cent.
  @clearly 1.5

  # Calls in a row hold their scheduler when half of their slices are this many budgets long, ...
  @starves 10

  # ... and they were charged less than this share of what they used.
  @charged 0.25

  # A NIF is short against a slice of many.
  @short 0.5

  # Dirty work that has this share of its call in one slice does not yield.
  @whole 0.5

  # Work goes on when it took more than this share of what was left of it, and more than it takes to see that.
  @goes_on 0.5
  @seen_us 2_000

  @doc """
  The verdicts. `:killed` is `%{call_us: .., after_us: .., stopped_us: .., bytes: ..}`: how long a call takes, when its caller was
  killed, and how long after that its work went on; nil where no call took long enough to tell. `:leak` is a
  `t:Tame.Audit.Leak.t/0` with `:bytes`, or nil.
  """
  @spec judge([Point.t()], %{killed: nil | map(), leak: nil | map()}, pos_integer()) :: [t()]
  def judge(points, seen, budget_us) do
    slices = slices(points, budget_us)

    # A function that blocks from some size on does so at times a little below it.
    found =
      slices ++
        if(slices == [], do: at_times(points, budget_us), else: []) ++
        dirty(points, budget_us) ++
        charges(points, budget_us) ++
        kill(seen.killed) ++ leak(seen.leak)

    case {found, points} do
      {[], []} -> []
      {[], _} -> [well_behaved(points)]
      {_, _} -> found
    end
  end

  @doc "The size at which the longest slice crosses the budget."
  @spec crosses([Point.t()], pos_integer()) :: pos_integer() | nil
  def crosses(points, budget_us), do: points |> pairs() |> Growth.crosses(budget_us)

  @doc "Sizes with their longest slices, of the kind of the largest size."
  @spec pairs([Point.t()]) :: [{pos_integer(), number()}]
  def pairs([]), do: []

  def pairs(points) do
    kind = List.last(points).slice_kind
    for %{slice_kind: ^kind} = point <- points, do: {point.bytes, point.longest_slice_us}
  end

  defp well_behaved(points) do
    longest = Enum.max_by(points, & &1.longest_slice_us)
    {:well_behaved, longest.longest_slice_us, longest.bytes}
  end

  defp slices(points, budget_us) do
    normal = of_kind(points, :normal)

    over =
      for {point, us} <- normal,
          us > @clearly * budget_us,
          not once?(point, budget_us),
          do: {point, us}

    case over do
      [] ->
        []

      [{first, _} | _] ->
        {worst, us} = Enum.max_by(over, &elem(&1, 1))
        pairs = for {point, us} <- normal, do: {point.bytes, us}

        if many_calls?(worst),
          do: [under_charges(worst, worst.longest_call_us, us)],
          else: [{:blocks, Growth.crosses(pairs, budget_us) || first.bytes, us, worst.bytes}]
    end
  end

  # Each size with its longest slice on schedulers of that kind, where it had one.
  defp of_kind(points, kind) do
    for point <- points,
        us = if(point.slice_kind == kind, do: point.longest_slice_us, else: point.other_slice_us),
        do: {point, us}
  end

  # No other call of that size was clearly over the budget, whatever the operating system took from it.
  defp once?(%{slice_kind: :normal, second_slice_us: us}, budget_us) when us != nil,
    do: us <= @clearly * budget_us

  defp once?(_point, _budget_us), do: false

  @doc "How long a slice is that is clearly over the budget."
  @spec clearly_us(pos_integer()) :: number()
  def clearly_us(budget_us), do: @clearly * budget_us

  @doc "Whether calls in a row had a slice clearly over the budget, by whatever cause, and single calls had none."
  @spec row_longer?(Point.t(), nil | map(), pos_integer()) :: boolean()
  def row_longer?(_point, nil, _budget_us), do: false

  def row_longer?(point, loop, budget_us) do
    point.slice_kind == :normal and point.longest_slice_us <= @clearly * budget_us and
      loop.normal.longest_ns / 1000 > @clearly * budget_us
  end

  # Seen in a row of calls, or in one of those that were made by themselves.
  defp at_times(points, budget_us) do
    in_a_row =
      for %{held: %{us: us, calls: calls, seen: seen}, bytes: bytes} <- points,
          do: {:blocks_at_times, max(1, round(calls / seen)), us, bytes}

    alone =
      for %{slice_kind: :normal, longest_slice_us: us} = point <- points,
          us > @clearly * budget_us and once?(point, budget_us),
          do: {:blocks_at_times, point.calls, us, point.bytes}

    (in_a_row ++ alone) |> Enum.sort_by(&elem(&1, 2), :desc) |> Enum.take(1)
  end

  # The slice was long, but no NIF in it was, and little was charged: else what is long is Erlang's own.
  defp many_calls?(%{longest_call_us: nil}), do: false

  defp many_calls?(point) do
    point.longest_call_us < @short * point.longest_slice_us and point.charge_ratio < @charged
  end

  # Short calls: is the scheduler held by a row of them all the same?
  defp charges(points, budget_us) do
    held? = Enum.any?(points, &(&1.held != nil))

    starving =
      for %{slice_kind: :normal, loop_calls: calls} = point <- points,
          calls != nil and calls > 2,
          point.longest_slice_us <= @clearly * budget_us,
          point.loop_median_us >= @starves * budget_us,
          point.charge_ratio < @charged,
          do: point

    case starving do
      [] ->
        []

      # What held it was known at one size, and not looked for at the others.
      _ when held? ->
        []

      points ->
        points
        |> Enum.max_by(& &1.loop_slice_us)
        |> then(&[under_charges(&1, &1.elapsed_us, &1.loop_slice_us)])
    end
  end

  defp under_charges(point, call_us, slice_us) do
    {:under_charges, call_us, slice_us, point.neighbour_max_us, point.charge_ratio}
  end

  defp dirty(points, budget_us) do
    case for {point, us} <- of_kind(points, :dirty), holds?(point, us, budget_us), do: {point, us} do
      [] ->
        []

      over ->
        {worst, us} = Enum.max_by(over, &elem(&1, 1))
        [{:dirty, us, worst.bytes, worst.dirty_wait_max_us}]
    end
  end

  # What yields there may take longer slices: only other dirty work waits for it.
  defp holds?(point, slice_us, budget_us) do
    slice_us > budget_us and
      (slice_us > @whole * point.elapsed_us or slice_us > @starves * budget_us)
  end

  defp kill(nil), do: []

  defp kill(%{stopped_us: stopped_us, call_us: call_us, after_us: after_us, bytes: bytes}) do
    if stopped_us > @seen_us and stopped_us > @goes_on * (call_us - after_us),
      do: [{:ignores_kill, stopped_us, call_us, bytes}],
      else: []
  end

  defp leak(nil), do: []
  defp leak(leak), do: [{:leaks, leak.per_call, leak.what, leak.calls, leak.bytes}]

  @doc """
  A verdict in the words of the audit, with its numbers.

      iex> Tame.Audit.Verdict.text({:blocks, 524_288, 25_000, 16_777_216})
      "blocks above 524,288 bytes: a slice of 25 ms at 16,777,216 bytes"
  """
  @spec text(t()) :: String.t()
  def text({:well_behaved, slice_us, bytes}),
    do: "well-behaved: no slice above #{Duration.measured(slice_us)} (at #{bytes(bytes)})"

  def text({:blocks, above, slice_us, bytes}),
    do: "blocks above #{bytes(above)}: a slice of #{Duration.measured(slice_us)} at #{bytes(bytes)}"

  def text({:blocks_at_times, one_of, slice_us, bytes}),
    do:
      "blocks now and then: 1 of #{Number.grouped(one_of)} calls holds its scheduler for at least " <>
        "#{Duration.measured(slice_us)} at #{bytes(bytes)}"

  def text({:under_charges, call_us, slice_us, late_us, ratio}) do
    charged = if ratio, do: ", charged #{round(100 * ratio)} % of its time", else: ""

    "under-charges: calls of #{Duration.measured(call_us)} in a row hold a scheduler for #{Duration.measured(slice_us)}#{charged}; " <>
      "a neighbour woke #{Duration.measured(late_us)} late"
  end

  def text({:dirty, held_us, bytes, waited_us}) do
    waited =
      if waited_us,
        do:
          "; with all threads busy in this way, other dirty work waited #{Duration.measured(waited_us)}",
        else: ""

    "dirty, holds its thread for #{Duration.measured(held_us)} at #{bytes(bytes)}#{waited}"
  end

  def text({:ignores_kill, stopped_us, call_us, bytes}),
    do:
      "ignores a killed caller: work went on for #{Duration.measured(stopped_us)} of a call of #{Duration.measured(call_us)} (at #{bytes(bytes)})"

  def text({:leaks, per_call, what, calls, bytes}),
    do:
      "leaks #{Number.grouped(max(1, round(per_call)))} #{what} a call: they grew alike in every round of " <>
        "#{Number.grouped(calls)} calls (at #{bytes(bytes)})"

  def text({:inconclusive, up_to, why}), do: "inconclusive above #{bytes(up_to)}: #{why}"

  def text({:not_measured, what, why}), do: "not measured, #{what}: #{why}"

  def text({:hangs, bytes, limit_us}),
    do: "does not return: ended with its VM after #{Duration.measured(limit_us)} at #{bytes(bytes)}"

  def text({:crashes, bytes, how}), do: "crashes: ended the VM with #{how} at #{bytes(bytes)}"

  @doc "The names of all verdicts, or of those of a kind."
  @spec names(:any | :good | :allowable | :failure) :: [atom()]
  def names(kind \\ :any), do: for({name, {of, _, _}} <- @meanings, kind in [:any, of], do: name)

  @doc "Every verdict in the words of `text/1`, without its numbers, and what it means, as a Markdown list."
  @spec help() :: String.t()
  def help,
    do: Enum.map_join(@meanings, "\n", fn {_, {_, words, means}} -> "  * `#{words}` - #{means}" end)

  @doc "The verdict's bare name, as a budget file of `--ci` names it."
  @spec name(t()) :: atom()
  def name(verdict), do: elem(verdict, 0)

  defp bytes(count), do: "#{Number.grouped(count)} bytes"
end
