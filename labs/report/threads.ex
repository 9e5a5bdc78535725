defmodule Tame.Report.Threads do
  @moduledoc """
  The picture of who used the cores of a VM and who waited there meanwhile, for every lab that looks at one. Pure.

  From the top: bursts of jobs, where there were some; stretches for which a neighbour that wanted to run did not; then for
  each kind of thread the share of all cores that it used (`Tame.CPU`).
  """

  alias Tame.Report.{Colours, Lanes}
  alias Tame.Stats

  @typedoc "A stretch of time."
  @type stretch :: %{from_ms: number(), to_ms: number()}

  @typedoc "What was seen, as JSON has it. `:cpu` is from `Tame.CPU.shares/3`."
  @type seen :: %{
          required(:cpu) => [map()],
          required(:held) => [stretch()],
          optional(:bursts) => [stretch()],
          optional(term()) => term()
        }

  @lanes [
    {:bursts, "bursts", Colours.hex(:grey),
     "a burst of jobs, from its start to its last job's end"},
    {:held, "neighbours", Colours.hex(:vermillion), "a neighbour that wanted to run did not"},
    {:normal, "normal", Colours.hex(:blue), "CPU of the normal schedulers' threads"},
    {:dirty, "dirty", Colours.hex(:green), "CPU of the dirty schedulers' threads"},
    {:other, "other", Colours.hex(:amber),
     "CPU of all other threads of the VM, such as a library's pool"},
    {:hosts, "hosts", Colours.hex(:violet), "CPU of the OS processes of isolated libraries"}
  ]

  @doc "What one of `:cpu` is in a saved report."
  @spec shape() :: Tame.Report.Shape.t()
  def shape do
    Map.new(~w(since_ms at_ms normal dirty other hosts)a, &{&1, :number})
  end

  @doc "The colours of pictures of these, with what they mean."
  @spec words([seen()]) :: [Tame.Report.Section.word()]
  def words(seen), do: for({_, name, colour, meaning} <- lanes(seen), do: {colour, name, meaning})

  # How much time pictures on one scale show, as a multiple of what half of them need.
  @longest 2

  @doc "The time that is drawn of these, in ms, for pictures on one scale: one that is much longer than the others is cut off."
  @spec span([seen()]) :: [number()]
  def span(seen) do
    seen = Enum.filter(seen, &(&1.cpu != []))
    from = seen |> Enum.map(&hd(&1.cpu).since_ms) |> Enum.min(fn -> 0 end)
    ends = Enum.map(seen, &List.last(&1.cpu).at_ms)
    [from, min(Enum.max(ends, fn -> from + 1 end), @longest * (Stats.median(ends) || from + 1))]
  end

  @doc "The picture. Options are those of `Tame.Report.Lanes.chart/4`."
  @spec chart(String.t(), seen(), keyword()) :: map()
  def chart(description, seen, opts) do
    lanes = lanes([seen])
    names = for {_, name, colour, _} <- lanes, do: {name, colour}
    Lanes.chart(description, names, Enum.flat_map(lanes, &bars(&1, seen)), opts)
  end

  # Without bursts or hosts there is no lane for them.
  defp lanes(seen) do
    for {key, _, _, _} = lane <- @lanes,
        key != :bursts or Enum.any?(seen, &(Map.get(&1, :bursts, []) != [])),
        key != :hosts or Enum.any?(seen, fn %{cpu: cpu} -> Enum.any?(cpu, &(&1.hosts > 0)) end),
        do: lane
  end

  defp bars({key, name, _, meaning}, seen) when key in [:bursts, :held] do
    for %{from_ms: from, to_ms: to} <- seen[key],
        do: %{lane: name, from_ms: from, to_ms: to, share: 1, text: meaning}
  end

  defp bars({key, name, _, _}, seen) do
    for share <- seen.cpu do
      %{
        lane: name,
        from_ms: share.since_ms,
        to_ms: share.at_ms,
        share: share[key],
        text: "#{round(100 * share[key])} % of all cores"
      }
    end
  end
end
