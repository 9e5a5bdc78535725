defmodule Tame.Watch.Layout do
  @moduledoc """
  The full screen of the watch as lines of cells, for a size. Pure.

  A line is a list of `{text, style}` no wider than the screen; there are as many as the screen has rows. What comes
  from the node is shown without its control characters: a name must not write to the terminal.
  """

  alias Tame.Number
  alias Tame.Watch.View

  @type style :: :plain | :bold | :dim | :reverse | :warn
  @type line :: [{String.t(), style()}]
  @type size :: {columns :: pos_integer(), rows :: pos_integer()}

  # A terminal that does not know its size says 0.
  @unknown_size {80, 24}
  # A column of a table is no wider, so that the others are seen.
  @widest 44
  @bar 20

  @sorts %{longest: "longest", count: "count", name: "name"}

  @doc "Exactly as many lines as the screen has."
  @spec lines(View.t(), {non_neg_integer(), non_neg_integer()}) :: [line()]
  def lines(view, {columns, rows}) when columns < 1 or rows < 1, do: lines(view, @unknown_size)

  def lines(view, {columns, rows}) do
    body = Enum.take(body(view, rows - 1), rows - 1)
    blank = List.duplicate([], rows - 1 - length(body))
    Enum.map(body ++ blank ++ [help(view, columns)], &clip(&1, columns))
  end

  # ---- parts ----------------------------------------------------------------------------------------

  defp body(%{second: nil} = view, _rows),
    do: [[{view.node, :bold}], [], [{"waiting for its first second", :plain}]]

  defp body(view, rows) do
    head = head(view)
    tables = Enum.reject([processes(view), details(view), callers(view), hosts(view)], &is_nil/1)
    head ++ share(tables, rows - length(head))
  end

  defp head(%{facts: facts, second: second} = view) do
    [
      [
        {"#{facts.node}", :bold},
        {"  OTP #{facts.otp}, second #{div(second.at_ms, 1000)}, ", :plain},
        {"#{Number.grouped(second.processes)} processes, cost #{cost(second)} % of a core", :plain},
        {if(view.paused, do: "  PAUSED", else: ""), :warn}
      ],
      [],
      scheduler("normal", second.utilisation.normal, nil),
      scheduler("dirty CPU", second.utilisation.dirty_cpu, second.dirty.cpu),
      scheduler("dirty I/O", second.utilisation.dirty_io, second.dirty.io),
      neighbour(second.neighbour)
    ] ++ monitor(second.monitor) ++ looked_at(second) ++ calls(view.calls)
  end

  defp cost(second), do: :erlang.float_to_binary(second.cost_percent / 1, decimals: 2)

  defp scheduler(name, percent, threads) do
    full = round((percent || 0) * @bar / 100) |> max(0) |> min(@bar)

    [
      {String.pad_trailing(name, 11), :plain},
      {String.duplicate("█", full), if((percent || 0) > 90, do: :warn, else: :plain)},
      {String.duplicate("·", @bar - full), :dim},
      {String.pad_leading(if(percent, do: "#{round(percent)} %", else: "-"), 7), :plain}
    ] ++ threads(threads)
  end

  defp threads(nil), do: []

  defp threads(%{busy: busy, waiting: waiting}) do
    [
      {"  #{busy} at work", :plain},
      {", #{waiting} waiting", if(waiting > 0, do: :warn, else: :plain)}
    ]
  end

  defp neighbour(%{wakes: 0} = neighbour),
    do: [{"neighbours: none woke; late by #{ms(neighbour.max_us)} ms so far", :warn}]

  defp neighbour(neighbour) do
    [
      {"neighbours woke ", :plain},
      {"#{ms(neighbour.p99_us)} ms late", if(neighbour.p99_us > 10_000, do: :warn, else: :plain)},
      {" (p99), #{ms(neighbour.max_us)} ms at most", :plain}
    ]
  end

  defp ms(us), do: Number.short(us / 1000)

  defp monitor(nil), do: []
  defp monitor(who), do: [[{"long slices are not seen: #{who} has the system monitor", :warn}]]

  defp looked_at(%{looked_at: seen, processes: all}) when is_integer(seen) and seen < div(all, 2),
    do: [[{"#{seen} of #{all} processes looked at in the last round", :dim}]]

  defp looked_at(_second), do: []

  defp calls([]), do: []
  defp calls(calls), do: [[{"calls traced: #{length(calls)}", :plain}]]

  # ---- tables ---------------------------------------------------------------------------------------

  # {title, lines}: the lines share what rows there are.
  defp processes(view) do
    case View.processes(view) do
      [] ->
        {"In native code: nobody was seen there", []}

      rows ->
        cells = for row <- rows, do: [row.process, row.function, View.where(row.kind), row.for_ms]
        titles = ["process", "in", "threads", "for ms"]
        marked = Enum.find_index(rows, &(&1.process == view.selected))
        {"In native code now", table(titles, cells, marked)}
    end
  end

  defp details(%{details: nil}), do: nil
  defp details(%{details: {process, :asked}}), do: {"#{process}: asked", []}

  defp details(%{details: {process, lines}}) do
    {"#{process}, when it was asked",
     for({name, value} <- lines, do: [{String.pad_trailing(name, 18), :dim}, {value, :plain}])}
  end

  defp callers(view) do
    case View.top(view) do
      [] ->
        {"Callers of NIFs: none took long", []}

      rows ->
        cells =
          for row <- rows,
              do: [row.nif, row.from, row.where, row.count, row.longest_ms, row.process]

        titles = ["NIF", "called by", "threads", "count", "longest ms", "process"]
        {"Callers of NIFs, by #{@sorts[view.sort]}", table(titles, cells, nil)}
    end
  end

  defp hosts(%{hosts: nil}), do: nil
  defp hosts(%{hosts: []}), do: {"Hosts: nothing is isolated", []}

  defp hosts(%{hosts: hosts}) do
    cells =
      for host <- hosts do
        [host.module, host.state, host.os_pid, mib(host.rss_bytes), host.waiting, host.restarts]
      end

    titles = ["isolated module", "host", "OS process", "MiB", "waiting", "restarts"]
    {"Hosts", table(titles, cells, nil)}
  end

  defp mib(bytes), do: round(bytes / 1_048_576)

  # Numbers to the right, as wide as the column's widest text.
  defp table(titles, rows, marked) do
    texts = for row <- [titles | rows], do: Enum.map(row, &printable("#{&1}"))
    right = rows |> hd() |> Enum.map(&is_integer/1)

    widths =
      texts
      |> Enum.zip_with(& &1)
      |> Enum.map(fn column ->
        column |> Enum.map(&String.length/1) |> Enum.max() |> min(@widest)
      end)

    for {row, index} <- Enum.with_index(texts, -1) do
      text = [row, widths, right] |> Enum.zip_with(&cell/1) |> Enum.join("  ")

      cond do
        index == -1 -> [{text, :dim}]
        index == marked -> [{text, :reverse}]
        true -> [{text, :plain}]
      end
    end
  end

  defp cell([text, width, true]), do: String.pad_leading(cut(text, width), width)
  defp cell([text, width, false]), do: String.pad_trailing(cut(text, width), width)

  defp cut(text, width) do
    if String.length(text) > width, do: String.slice(text, 0, width - 1) <> "…", else: text
  end

  # Each table has a blank line and its title; the lines go to the tables in turn, so that none starves.
  defp share(tables, rows) do
    wanted = Enum.map(tables, fn {_, lines} -> length(lines) end)
    given = give(wanted, max(0, rows - 2 * length(tables)))

    Enum.zip_with(tables, given, fn {title, lines}, count ->
      left = length(lines) - count
      more = if left > 0, do: [{"  (#{left} more)", :dim}], else: []
      [[], [{title, :bold} | more] | Enum.take(lines, count)]
    end)
    |> Enum.concat()
  end

  defp give(wanted, rows) do
    {given, left} =
      wanted
      |> Enum.with_index()
      |> Enum.sort()
      |> Enum.map_reduce({rows, length(wanted)}, fn {want, index}, {left, tables} ->
        count = min(want, div(left, tables))
        {{index, want, count}, {left - count, tables - 1}}
      end)

    {given, _} =
      Enum.map_reduce(Enum.sort(given), elem(left, 0), fn {_, want, count}, left ->
        extra = min(want - count, left)
        {count + extra, left - extra}
      end)

    given
  end

  # ---- the last line --------------------------------------------------------------------------------

  defp help(view, columns) do
    text =
      " q quit   p #{if view.paused, do: "go on", else: "pause"}   s sort by #{@sorts[view.sort]}" <>
        "   ↑↓ select   enter ask the process   esc back"

    [{String.pad_trailing(text, columns), :reverse}]
  end

  # ---- cells ----------------------------------------------------------------------------------------

  defp clip(line, columns) do
    {cells, _} =
      Enum.map_reduce(line, columns, fn {text, style}, left ->
        text = text |> printable() |> String.slice(0, left)
        {{text, style}, left - String.length(text)}
      end)

    Enum.reject(cells, fn {text, _} -> text == "" end)
  end

  defp printable(text) do
    if String.printable?(text) and not (text =~ ~r/[\p{C}]/u),
      do: text,
      else: Regex.replace(~r/[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]/u, scrubbed(text), "?")
  end

  defp scrubbed(text) do
    text |> String.codepoints() |> Enum.map_join(&if(String.valid?(&1), do: &1, else: "?"))
  end
end
