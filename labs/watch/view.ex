defmodule Tame.Watch.View do
  @moduledoc """
  What the full screen of the watch shows, and what keys do to it. Pure: `Tame.Watch.Layout` draws it,
  `Tame.Watch.Screen` asks the node.
  """

  alias Tame.Watch.{Blame, Calls, Facts, Second}

  @typedoc "A process that is in native code: in a dirty NIF, or (`:normal`) on a normal scheduler, which it holds."
  @type process :: %{
          process: String.t(),
          function: String.t(),
          kind: :cpu | :io | :unknown | :normal,
          for_ms: non_neg_integer()
        }

  @typedoc "A NIF by whom it was called, over all seconds. `count` are its long slices, or the seconds it was seen in."
  @type caller :: %{
          nif: String.t(),
          from: String.t(),
          where: String.t(),
          count: pos_integer(),
          longest_ms: non_neg_integer(),
          process: String.t()
        }

  @typedoc "A host of an isolated module, as tame:info/0 of the node says."
  @type host :: %{
          module: String.t(),
          state: String.t(),
          os_pid: non_neg_integer(),
          rss_bytes: non_neg_integer(),
          waiting: non_neg_integer(),
          restarts: non_neg_integer()
        }

  @type sort :: :longest | :count | :name

  @type t :: %__MODULE__{
          node: String.t(),
          facts: Facts.t() | nil,
          second: Second.t() | nil,
          calls: [Calls.call()],
          callers: %{{String.t(), String.t(), String.t()} => caller()},
          hosts: [host()] | nil,
          paused: boolean(),
          sort: sort(),
          selected: String.t() | nil,
          details: nil | {String.t(), :asked | [{String.t(), String.t()}]},
          held_back: t() | nil
        }

  defstruct node: "",
            facts: nil,
            second: nil,
            calls: [],
            callers: %{},
            hosts: nil,
            paused: false,
            sort: :longest,
            selected: nil,
            details: nil,
            held_back: nil

  @sorts [:longest, :count, :name]

  # Callers beyond this are forgotten, those with the shortest slices first: a watch may last for hours.
  @most_callers 500

  @spec new(String.t()) :: t()
  def new(node), do: %__MODULE__{node: node}

  # ---- what comes from the node ---------------------------------------------------------------------

  @doc "A second's figures. While the view is paused they are kept and shown later."
  @spec second(t(), Facts.t(), Second.t(), [Calls.call()]) :: t()
  def second(%{paused: true} = view, facts, second, calls),
    do: %{view | held_back: second(view.held_back, facts, second, calls)}

  def second(view, facts, second, calls) do
    keep_selected(%{
      view
      | facts: facts,
        second: second,
        calls: calls,
        callers: callers(view.callers, second)
    })
  end

  @spec hosts(t(), [host()] | nil) :: t()
  def hosts(%{paused: true} = view, hosts),
    do: %{view | held_back: hosts(view.held_back, hosts)}

  def hosts(view, hosts), do: %{view | hosts: hosts}

  @doc "What the node said of the process that was asked for; nothing, if another one is shown by now."
  @spec details(t(), String.t(), [{String.t(), String.t()}]) :: t()
  def details(%{details: {process, _}} = view, process, lines),
    do: %{view | details: {process, lines}}

  def details(view, _process, _lines), do: view

  # ---- keys -----------------------------------------------------------------------------------------

  @doc "An event of `:tame_tty`. `{:ask, process, view}`: the node is to be asked about that process."
  @spec key(t(), term()) :: t() | :quit | :redraw | {:ask, String.t(), t()}
  def key(_view, {:key, ?q, []}), do: :quit
  def key(_view, {:key, ?c, [:ctrl]}), do: :quit
  def key(_view, {:key, ?l, [:ctrl]}), do: :redraw
  def key(view, {:key, ?p, []}), do: pause(view)
  def key(view, {:key, ?\s, []}), do: pause(view)
  def key(view, {:key, ?s, []}), do: %{view | sort: next(@sorts, view.sort)}
  def key(view, {:key, :down, []}), do: select(view, 1)
  def key(view, {:key, ?j, []}), do: select(view, 1)
  def key(view, {:key, :up, []}), do: select(view, -1)
  def key(view, {:key, ?k, []}), do: select(view, -1)
  def key(view, {:key, :escape, []}), do: %{view | selected: nil, details: nil}

  def key(%{selected: process} = view, {:key, :enter, []}) when process != nil,
    do: {:ask, process, %{view | details: {process, :asked}}}

  def key(view, _event), do: view

  defp pause(%{paused: true, held_back: later} = view) do
    keep_selected(%{later | sort: view.sort, selected: view.selected, details: view.details})
  end

  defp pause(view), do: %{view | paused: true, held_back: %{view | held_back: nil}}

  defp next(list, now) do
    index = Enum.find_index(list, &(&1 == now))
    Enum.at(list, rem(index + 1, length(list)))
  end

  defp select(view, step) do
    case Enum.map(processes(view), & &1.process) do
      [] ->
        view

      names ->
        index = Enum.find_index(names, &(&1 == view.selected))
        last = length(names) - 1
        start = if step > 0, do: 0, else: last
        %{view | selected: Enum.at(names, if(index, do: clamp(index + step, last), else: start))}
    end
  end

  defp clamp(index, last), do: index |> max(0) |> min(last)

  # A process that is no longer in native code is not selected, but what was asked of it stays.
  defp keep_selected(view) do
    if Enum.any?(processes(view), &(&1.process == view.selected)),
      do: view,
      else: %{view | selected: nil}
  end

  # ---- rows -----------------------------------------------------------------------------------------

  @doc "The processes in native code, the longest first; one that holds a normal scheduler before all."
  @spec processes(t()) :: [process()]
  def processes(%{second: nil}), do: []

  def processes(%{second: second}) do
    held =
      for %{process: process, for_ms: for_ms} <- List.wrap(second.held) do
        %{process: process, function: "a NIF", kind: :normal, for_ms: for_ms}
      end

    names = MapSet.new(held, & &1.process)

    dirty =
      second.holders
      |> Enum.reject(&(&1.process in names))
      |> Enum.uniq_by(& &1.process)
      |> Enum.sort_by(&{-&1.for_ms, &1.process})

    held ++ dirty
  end

  @doc "Who called NIFs that took long, in the order that is asked for."
  @spec top(t()) :: [caller()]
  def top(%{callers: callers, sort: sort}) do
    callers |> Map.values() |> Enum.sort_by(&{order(&1, sort), &1.nif, &1.from, &1.where})
  end

  defp order(caller, :longest), do: -caller.longest_ms
  defp order(caller, :count), do: -caller.count
  defp order(_caller, :name), do: 0

  defp callers(callers, second) do
    long =
      for row <- second.long_schedules do
        %{
          nif: nif(row.nifs),
          from: Blame.caller(row),
          where: "normal",
          count: row.count,
          longest_ms: row.longest_ms,
          process: row.process
        }
      end

    dirty =
      for holder <- second.holders do
        %{
          nif: holder.function,
          from: "-",
          where: where(holder.kind),
          count: 1,
          longest_ms: holder.for_ms,
          process: holder.process
        }
      end

    (long ++ dirty)
    |> Enum.reduce(callers, fn row, callers ->
      Map.update(callers, {row.nif, row.from, row.where}, row, &longer(&1, row))
    end)
    |> bounded()
  end

  defp longer(known, row) do
    longest = Enum.max_by([row, known], & &1.longest_ms)
    %{longest | count: known.count + row.count}
  end

  defp bounded(callers) when map_size(callers) <= @most_callers, do: callers

  defp bounded(callers) do
    callers
    |> Enum.sort_by(fn {_, row} -> -row.longest_ms end)
    |> Enum.take(@most_callers)
    |> Map.new()
  end

  defp nif([]), do: "no NIF known"
  defp nif([nif]), do: nif
  defp nif(nifs), do: "one of " <> Enum.join(nifs, ", ")

  @doc "On which threads, in words."
  @spec where(:cpu | :io | :unknown | :normal) :: String.t()
  def where(:cpu), do: "dirty CPU"
  def where(:io), do: "dirty I/O"
  def where(:unknown), do: "dirty"
  def where(:normal), do: "normal"
end
