defmodule Tame.Threads do
  @moduledoc """
  Uses of `enif_*` on every kind of thread of a VM, for `docs/reference/threads.md`. `Tame.ThreadsTable` says which
  of them are to work where; `natives/threads` has the C side.

  `run/2` does one use (an op) on one kind of thread, with terms of every size at which the emulator changes how it
  treats them, and says what is not as it has to be. It is called in a throw-away VM, which an op may end.
  """

  @on_load :load

  # What the thread answers that it is, as enif_thread_type says. Callbacks come from wherever they come from:
  # the test compares that with the table.
  @kinds ~w(normal dirty_cpu dirty_io thread dtor dtor_thread down stop)a

  def kinds, do: @kinds

  def load do
    case :os.getenv(~c"TAME_THREADS_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end

  for kind <- @kinds -- [:down] do
    def unquote(kind)(_op, _term, _ref), do: :erlang.nif_error(:nif_not_loaded)
  end

  def down(_op, _term, _ref, _victim), do: :erlang.nif_error(:nif_not_loaded)

  @doc "What the op makes of the term on a thread of the kind: `{thread, result}`."
  def on(kind, op, term) do
    ref = make_ref()

    case start(kind, op, term, ref) do
      {^ref, thread, result} -> {thread, result}
      :ok -> receive(do: ({^ref, thread, result} -> {thread, result}))
      other -> {kind, other}
    end
  end

  defp start(:down, op, term, ref) do
    victim = spawn(fn -> receive(do: (:end -> :ok)) end)
    :ok = down(op, term, ref, victim)
    send(victim, :end)
    :ok
  end

  defp start(kind, op, term, ref), do: apply(__MODULE__, kind, [op, term, ref])

  @doc """
  The threads that the op ran on, and where it went wrong: `{[thread], [{case, got}]}`. With all its terms, with
  those named, without those named (`{:except, _}`), or with those named and all that are no question of size
  (`{:few, _}`).
  """
  def run(kind, op, which \\ :all) do
    results =
      for {name, term, right?} <- cases(op, &wanted?(&1, which)), wanted?(name, which) do
        {thread, result} = on(kind, op, term)
        {thread, if(not right?.(result, thread), do: {name, short(result)})}
      end

    {results |> Enum.map(&elem(&1, 0)) |> Enum.uniq(),
     for({_, wrong} when wrong != nil <- results, do: wrong)}
  end

  defp wanted?(_name, :all), do: true
  defp wanted?(name, {:except, names}), do: name not in names
  defp wanted?(name, {:few, names}), do: name in names or not sized?(name)
  defp wanted?(name, names), do: name in names

  defp sized?({kind, _}), do: kind in [:map, :binary]
  defp sized?(name), do: name in [:nested_maps, :map_keys, :bignum, :bignum_10k, :list, :deep]

  defp short(term), do: inspect(term, limit: 5, printable_limit: 50)

  # ---- the terms ---------------------------------------------------------------------------------

  @maps [0, 1, 32, 33, 128, 129, 1000, 100_000]

  defp map(0), do: %{}
  defp map(n), do: Map.new(0..(n - 1), &{&1, &1})

  defp bytes(n) when n > 256, do: :binary.part(:binary.copy(bytes(256), div(n, 256) + 1), 0, n)
  defp bytes(n), do: for(i <- range(n), into: <<>>, do: <<i::8>>)
  defp range(0), do: []
  defp range(n), do: Enum.to_list(0..(n - 1))

  defp deep(0), do: []
  defp deep(n), do: [deep(n - 1)]

  # Each a size at which the emulator does another thing. Those that are wanted are made, and no others.
  defp terms(wanted?), do: for({name, make} <- catalogue(), wanted?.(name), do: {name, make.()})

  defp catalogue do
    for(n <- @maps, do: {{:map, n}, fn -> map(n) end}) ++
      for(n <- [0, 63, 64, 65, 1_048_576], do: {{:binary, n}, fn -> bytes(n) end}) ++
      [
        {:nested_maps, fn -> Map.new(1..200, &{&1, map(40)}) end},
        {:map_keys, fn -> Map.new(1..200, &{map(&1), &1}) end},
        {:bits, fn -> <<5::3, bytes(100)::binary>> end},
        {:small, fn -> 7 end},
        {:bignum, fn -> Bitwise.bsl(1, 64) end},
        {:bignum_10k, fn -> -Bitwise.bsl(1, 80_000) end},
        {:float, fn -> 0.5 end},
        {:list, fn -> range(1_000_000) end},
        {:tuple, fn -> List.to_tuple(range(65_536)) end},
        {:atom, fn -> :erlang.list_to_atom(List.duplicate(?x, 255)) end},
        {:unicode, fn -> :é end},
        {:deep, fn -> deep(10_000) end},
        {:pid, fn -> self() end},
        {:ref, fn -> make_ref() end},
        {:fun, fn -> &:erlang.self/0 end},
        {:closure, fn -> Function.capture(__MODULE__, :kinds, 0) end}
      ]
  end

  # What the ops get, by name, and whether what they make of it is right.
  defp cases(op, wanted?) when op in [:copy],
    do: for({name, term} <- terms(wanted?), do: {name, term, same(term)})

  defp cases(:to_binary, wanted?) do
    for {name, term} <- terms(wanted?) do
      {name, term, fn got, _ -> is_binary(got) and :erlang.binary_to_term(got) == term end}
    end
  end

  defp cases(:from_binary, wanted?) do
    for {name, term} <- terms(wanted?), do: {name, :erlang.term_to_binary(term), same(term)}
  end

  defp cases(:hash_phash2, wanted?) do
    for {name, term} <- terms(wanted?), do: {name, term, same(:erlang.phash2(term))}
  end

  defp cases(op, wanted?) when op in [:hash_internal, :print] do
    for {name, term} <- terms(wanted?) do
      {name, term, fn got, _ -> got == elem(on(:normal, op, term), 1) end}
    end
  end

  defp cases(:compare, wanted?),
    do: for({name, term} <- terms(wanted?), do: {name, term, same(:equal)})

  defp cases(op, wanted?) when op in [:send_copied, :send_moved] do
    for {name, term} <- terms(wanted?) do
      {name, term,
       fn got, _ ->
         got == :sent and
           receive(do: ({:message, message} -> message == term), after: (5000 -> false))
       end}
    end
  end

  defp cases(op, wanted?) when op in [:map_from_arrays, :map_put] do
    for n <- @maps, wanted?.({:map, n}), do: {{:map, n}, n, same(map(n))}
  end

  defp cases(:map_update, wanted?) do
    for n <- @maps, n > 0, wanted?.({:map, n}), do: {{:map, n}, map(n), same(%{(n - 1) => n - 1})}
  end

  defp cases(:map_iterator, wanted?) do
    for n <- @maps, wanted?.({:map, n}), do: {{:map, n}, map(n), same(2 * div(n * (n - 1), 2))}
  end

  defp cases(:list, _), do: for(n <- [0, 1, 1_000_000], do: {{:list, n}, range(n), same(range(n))})

  defp cases(:tuple, _) do
    for n <- [0, 1, 65_536] do
      {{:tuple, n}, List.to_tuple(range(n)), same({List.to_tuple(range(n)), range(n)})}
    end
  end

  defp cases(:binary, _) do
    for n <- [0, 63, 64, 65, 1_048_576] do
      {{:binary, n}, bytes(n), same(List.duplicate(bytes(n), 4))}
    end
  end

  defp cases(:iolist, _) do
    for {name, term} <- [
          {:empty, []},
          {:bytes, range(200)},
          {:mixed, [1, ["ab", [bytes(65)]] | bytes(1_048_576)]},
          {:long, List.duplicate("abc", 100_000)}
        ],
        do: {name, term, same(:erlang.iolist_to_binary(term))}
  end

  defp cases(:ioq, _) do
    for list <- [["ab"], [bytes(65), bytes(1000)], List.duplicate("abc", 1000)] do
      size = :erlang.iolist_size(list)
      <<_, rest::binary>> = hd(list)
      {{:list, length(list)}, list, same({size - 1, rest})}
    end
  end

  defp cases(:atoms, _) do
    for text <- [~c"ok", ~c"never_made_before", List.duplicate(?y, 255)] do
      {{:atom, length(text)}, text, fn got, _ -> is_atom(got) and Atom.to_charlist(got) == text end}
    end
  end

  defp cases(:numbers, _) do
    max = Bitwise.bsl(1, 64) - 1
    [{:numbers, [], same([max, -Bitwise.bsl(1, 63), -1, 0.5, ~c"text"])}]
  end

  defp cases(:make_ref, _) do
    [{:two, [], fn {a, b}, _ -> is_reference(a) and is_reference(b) and a != b end}]
  end

  defp cases(:unique_integer, _) do
    [
      {:all, [],
       fn [any, positive, _, both] = all, _ ->
         Enum.all?(all, &is_integer/1) and any != positive and positive > 0 and both > 0
       end}
    ]
  end

  # Off the schedulers the manual promises an error, and nothing else.
  defp cases(:clocks, _) do
    [
      {:both, [],
       fn {a, b}, thread ->
         if(thread == :none, do: {a, b} == {:error, :error}, else: is_integer(a + b))
       end}
    ]
  end

  defp cases(:system_info, _) do
    [{:info, [], same({:erlang.system_info(:schedulers), 1_000_000})}]
  end

  # An environment that is no process's has none.
  defp cases(:self, _), do: [{:self, [], fn got, _ -> got in [self(), :none] end}]
  defp cases(:whereis, _), do: [{:init, [], same(Process.whereis(:init))}]
  defp cases(:alive, _), do: [{:alive, [], same(true)}]
  defp cases(:monitor, _), do: [{:monitor, [], same(true)}]

  defp cases(:port_alive, _) do
    port = Port.open({:spawn, ~c"cat"}, [:binary])
    closed = Port.open({:spawn, ~c"cat"}, [:binary])
    Port.close(closed)
    [{:open, port, same(true)}, {:closed, closed, same(false)}]
  end

  defp cases(:port_command, _) do
    for {name, data} <- [
          {:small, {self(), {:command, "ab"}}},
          {:large, {self(), {:command, bytes(1_048_576)}}}
        ] do
      port = Port.open({:spawn, ~c"cat"}, [:binary])
      {_, {:command, sent}} = data
      {name, {port, sent}, fn got, _ -> got == :sent and echoed(port, byte_size(sent)) end}
    end
  end

  defp cases(:port_command_closed, _), do: [{:closed, {closed_port(), "ab"}, same(:refused)}]

  defp cases(:port_command_null, _) do
    [{:null, {Port.open({:spawn, ~c"cat"}, [:binary]), "ab"}, same(:sent)}]
  end

  # Its destructor answers as well; where it runs is a fact of its own (dtor_thread/1).
  defp cases(:resource, _) do
    [
      {:resource, [],
       fn got, _ ->
         got == :released and receive(do: ({:dtor, _} -> true), after: (5000 -> false))
       end}
    ]
  end

  defp cases(:select_event, _) do
    [
      {:pipe, [],
       fn got, _ ->
         got == 0 and
           receive(do: ({:select, _, :undefined, :ready_input} -> true), after: (5000 -> false))
       end}
    ]
  end

  defp cases(:current_alive, _), do: [{:current, [], same(1)}]
  defp cases(:priv_data, _), do: [{:found, [], same(:found)}]
  defp cases(:schedule_nif, _), do: [{:scheduled, [], same(:scheduled)}]
  defp cases(:consume_timeslice, _), do: [{:consumed, [], fn got, _ -> got in [0, 1] end}]
  defp cases(:raise_and_send, _), do: [{:raised, [], same(:sent)}]

  defp same(expected), do: fn got, _thread -> got === expected end

  defp closed_port do
    port = Port.open({:spawn, ~c"cat"}, [:binary])
    Port.close(port)
    port
  end

  defp echoed(_port, 0), do: true

  defp echoed(port, left) do
    receive do
      {^port, {:data, data}} -> echoed(port, left - byte_size(data))
    after
      5000 -> false
    end
  end

  @doc "On which thread the destructor runs of a resource whose last use was on a thread of this kind."
  def dtor_of(kind) do
    {_, :released} = on(kind, :resource, [])
    receive(do: ({:dtor, thread} -> thread), after: (5000 -> :never))
  end
end
