defmodule Tame.Host.ContractTest do
  # Every function of erl_nif that enif_api.def calls FULL, here and in a host: the same library, the
  # same arguments, the same results. The cases and the clauses of the manual that they check are in
  # test/support/natives/contract. What has to do with processes is in contract_processes_test.exs.
  use ExUnit.Case, async: true

  alias Tame.Property
  alias Tame.Test.{CLibrary, Contract, Host, Terms}

  setup_all do
    %{library: Contract.here!(CLibrary.tmp_dir!())}
  end

  setup %{library: library} do
    %{host: Contract.start_alike(library)}
  end

  # Cases whose result depends on nothing.
  for name <- ~w(make_numbers make_double_infinite make_double_nan atoms_are_words make_string
                 make_binary_leaves_data_readable make_new_binary maps_do_not_change badarg
                 schedule_dirty resource_terms_are_references resource_destructor_is_not_called_inside
                 resource_binary resource_dynamic_call make_refs unique_integers threads locks
                 thread_specific_data thread_types thread_types_dirty_cpu thread_types_dirty_io
                 convert_time clock_of_other_thread system_info getenv_ memory private_data
                 dynamic_libraries errno_ids consume_timeslice scheduled_is_no_exception)a do
    test "#{name}", %{host: host} do
      Contract.same(host, unquote(name), [])
    end
  end

  # Cases of one term, any.
  for name <-
        ~w(echo copy_there_and_back clear_env_and_use_again types numbers atoms get_string lists
                 list_length make_lists_and_tuples tuple_elements inspect raise_reason
                 raise_and_return_another phash2 internal_hash_of_a_copy map_order)a do
    test "#{name}", %{host: host} do
      terms = Terms.hard() -- [:erlang.list_to_atom(List.duplicate(0x10FFFF, 255))]

      for term <- terms,
          small_enough?(unquote(name), term),
          do: Contract.same(host, unquote(name), term)

      Property.check(Terms.generator(), fn term ->
        if small_enough?(unquote(name), term), do: Contract.same(host, unquote(name), term)
        true
      end)
    end
  end

  test "make_utf8", %{host: host} do
    whole = ["", "a", "hå", "€!", "𠜱", <<0xF4, 0x8F, 0xBF, 0xBF>>]

    broken =
      for bytes <-
            [[0x80], [0xC3], [0xC0, 0x80], [0xC3, 0x28], [0xE0, 0x80, 0x80]] ++
              [[0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xE2, 0x82]],
          do: :erlang.list_to_binary([?a | bytes])

    for text <- whole ++ broken, do: Contract.same(host, :make_utf8, text)

    Property.check(:proper_types.binary(), fn text ->
      Contract.same(host, :make_utf8, text)
      true
    end)
  end

  # A map of more than 32 pairs that came from the VM is in the VM's order; one nested in it was
  # made by the VM too. Results of many copies of a large term take long to compare.
  defp small_enough?(name, term), do: :erts_debug.flat_size(term) < largest(name)

  defp largest(:make_lists_and_tuples), do: 50_000
  defp largest(_), do: 1_000_000_000

  test "print_term", %{host: host} do
    for term <- Terms.hard(),
        :erts_debug.flat_size(term) < 5000,
        printable?(term),
        do: Contract.same(host, :print_term, term)

    Property.check(Terms.generator(), fn term ->
      if printable?(term), do: Contract.same(host, :print_term, term)
      true
    end)

    for term <- [
          ~c"\n\t\r\b\f\v\\\"\d\e",
          ~c"\t",
          ~c"\r",
          ~c"a\nb",
          ~c"\\",
          ~c"\"",
          [0xE9],
          "a\"b\\",
          :"it's",
          :Upper,
          :_x,
          :a@b,
          :aÀ,
          <<127>>,
          ~c"~"
        ],
        do: Contract.same(host, :print_term, term)

    Contract.same(host, :print_formats, {:a, [1, 2]})
  end

  # The note in enif_api.def: funs, foreign identifiers and large maps are printed in another way.
  # Beyond 100,000 parts the VM writes three dots.
  defp printable?(term) when is_function(term), do: false
  defp printable?(term) when is_bitstring(term) and bit_size(term) > 80_000, do: false
  defp printable?(term) when is_map(term) and map_size(term) > 32, do: false

  defp printable?(term) when is_map(term),
    do: Enum.all?(term, fn {k, v} -> printable?(k) and printable?(v) end)

  defp printable?([head | tail]), do: printable?(head) and printable?(tail)
  defp printable?(term) when is_tuple(term), do: printable?(Tuple.to_list(term))

  defp printable?(term) when is_pid(term) or is_reference(term) or is_port(term),
    do: node(term) == node()

  defp printable?(_), do: true

  test "make_atom_of_binary, make_existing_atom", %{host: host} do
    for size <- [0, 1, 254, 255, 256, 1000],
        do: Contract.same(host, :make_atom_of_binary, String.duplicate("q", size))

    Contract.same(host, :make_atom_of_binary, <<0xE9, 0xFF>>)
    # An atom that the host made first must exist in the VM when its reply is read.
    name = "made_by_the_host_#{System.unique_integer([:positive])}"
    assert {:value, atom} = Host.call(host, :make_atom_of_binary, [name])
    assert Atom.to_string(atom) == name

    for name <- ["true", "undefined", "", "no atom of this name anywhere"],
        do: Contract.same(host, :make_existing_atom, name)

    assert {:value, {0, 0}} = Host.call(host, :make_existing_atom, ["nor of this"])
    assert_raise ArgumentError, fn -> String.to_existing_atom("nor of" <> " this") end
    late = "later_#{System.unique_integer([:positive])}"
    assert {:value, {0, 0}} = Host.call(host, :make_existing_atom, [late])
    atom = String.to_atom(late)
    assert {:value, {1, ^atom}} = Host.call(host, :make_existing_atom, [late])
  end

  test "binary_to_term refuses new atoms when it is to be safe", %{host: host} do
    Contract.same(host, :binary_to_term_safe, :erlang.term_to_binary({true, [:undefined]}))
    Contract.same(host, :binary_to_term_safe, <<131, 100, 5::16, "zz" <> "zzq">>)
  end

  test "realloc_binary, release_binary, sub_binaries", %{host: host} do
    for size <- [0, 1, 63, 64, 65, 1000],
        name <- [:realloc_binary, :release_binary, :sub_binaries],
        do: Contract.same(host, name, :binary.copy("b", size))
  end

  test "a binary whose data and size were changed before it became a term", %{host: host} do
    small = [{60, 10, 20}, {60, 0, 0}, {200, 150, 40}, {200, 7, 64}]
    # From OTP 27 on the VM goes by data and size, up to OTP 26 by what was allocated.
    large = [{200, 10, 100}, {200, 0, 65}, {1000, 100, 900}]
    old = [{200, 200, 200}, {200, 0, 5000}, {200, 100, 150}]

    for moved <- small ++ large ++ if(System.otp_release() < "27", do: old, else: []),
        do: Contract.same(host, :make_binary_moved, moved)

    for moved <- large do
      assert {:value, <<first, _::binary>> = made} = Contract.same(host, :make_binary_moved, moved)
      {allocated, offset, size} = moved
      here = if System.otp_release() < "27", do: {0, allocated}, else: {offset, size}
      assert here == {first, byte_size(made)}
    end
  end

  test "one byte too far behind a binary of its own", %{host: host} do
    for size <- Enum.to_list(0..130) ++ [1000, 4096], do: Contract.same(host, :write_past_end, size)
  end

  test "seven bytes too far behind arguments and what the environment owns", %{host: host} do
    for sizes <- [[1], [64, 64], [65, 65, 65], [100, 1, 1000, 70_000], Enum.to_list(60..80)] do
      binaries = for size <- sizes, do: :binary.copy("b", size)
      made = Enum.take(binaries, 20)

      assert {:value, {^binaries, ^made}} = Host.call(host, :write_past_arguments, [binaries])
      # What is lent stands where the bytes of the frame are.
      assert {:value, {^binaries, ^made}} = Host.call(host, :write_past_arguments, [binaries])
    end
  end

  test "the bytes of an argument are aligned", %{host: host} do
    for sizes <- [[1], [65], [63, 64, 65, 66], Enum.to_list(60..160), [70_000, 3, 1_000_000]] do
      binaries = for size <- sizes, do: :binary.copy("b", size)
      assert {:value, places} = Contract.same(host, :alignment, binaries)
      assert Enum.uniq(places) == [0]
    end
  end

  test "the locale is that of the environment", %{library: library, host: host} do
    Contract.same(host, :multibyte, [])

    for {locale, characters} <- [{"C.UTF-8", 1}, {"C", -1}] do
      other = Host.start(env: [LC_ALL: locale]) |> Host.load!(library, :contract_nif)
      assert {:value, ^characters} = Host.call(other, :multibyte, [[]])
      Host.stop(other)
    end
  end

  # Since OTP 27 copies of parts of one are resources in other cases, which a host does not follow yet.
  if :erlang.system_info(:otp_release) in [~c"25", ~c"26"] do
    test "a resource binary is a resource", %{host: host} do
      for size <- [0, 1, 63, 64, 65, 128, 129, 130, 131, 300],
          do: Contract.same(host, :resource_binary_is_resource, size)
    end
  else
    IO.puts("skip: which copies of parts of a resource binary are resources differs from OTP 27 on")
  end

  test "binary_to_term refuses compressed terms, and takes lists without elements", %{host: host} do
    compressed = :erlang.term_to_binary(String.duplicate("a", 1000), [:compressed])
    assert {:value, {0, :none}} = Contract.same(host, :binary_to_term, compressed)

    for lists <- [1, 2, 200_000], tail <- [<<106>>, <<97, 1>>, <<>>] do
      empty = :binary.copy(<<108, 0::32>>, lists)
      Contract.same(host, :binary_to_term, <<131, empty::binary, tail::binary>>)
      Contract.same(host, :binary_to_term, <<131, 108, 1::32, 97, 7, empty::binary, tail::binary>>)
    end
  end

  test "binary_to_term wants the version byte", %{host: host} do
    for bytes <- ["", <<131>>, <<97, 1>>, <<131, 97, 1>>, <<131, 131, 97, 1>>, <<130, 97, 1>>],
        do: Contract.same(host, :binary_to_term, bytes)

    assert {:value, {0, :none}} = Contract.same(host, :binary_to_term, Host.encode(:an_atom))
  end

  # OTP 26 and newer write a small map's atoms in the order in which they were made. What such a VM
  # sends is written here byte by byte, so that it is tried on any.
  test "small maps of a VM that does not order them by key", %{library: library} do
    host = Host.start()
    {:ok, host} = Host.load(host, library, :contract_nif, 0, %{otp_release: "26"})
    on_exit(fn -> Host.stop(host) end)
    pairs = [b: 2, a: 1, d: {}, c: []]

    map = fn pairs ->
      [<<116, length(pairs)::32>>, for({k, v} <- pairs, t <- [k, v], do: Host.encode(t))]
    end

    pair = fn a, b -> [<<104, 2>>, map.(a), map.(b)] end

    for a <- [pairs, Enum.reverse(pairs), Enum.sort(pairs)], b <- [pairs, Enum.shuffle(pairs)] do
      assert {:value, {0, 1}} = Host.call_encoded(host, :order, [pair.(a, b)])
    end

    # By key, and then by value: not by the order in which they came.
    assert {:value, {-1, 0}} = Host.call_encoded(host, :order, [pair.([b: 1, a: 1], a: 1, c: 1)])
    assert {:value, {1, 0}} = Host.call_encoded(host, :order, [pair.([b: 1, a: 2], a: 1, b: 2)])
    # The library goes over it in the order in which it came, which is the VM's.
    assert {:value, {walked, _}} = Host.call_encoded(host, :map_order, [map.(pairs)])
    assert walked |> Enum.slice(1..4) |> Enum.reverse() == pairs
  end

  describe "I/O vectors and queues:" do
    test "vectors of every size, in and without an environment", %{host: host} do
      bytes = fn size -> :binary.copy("abcdefgh", div(size, 8) + 1) |> binary_part(0, size) end

      lists =
        for(
          n <- [0, 1, 2, 15, 16, 17, 18, 100],
          size <- [0, 1, 64, 65],
          do: List.duplicate(bytes.(size), n)
        ) ++
          [Enum.map([0, 1, 63, 64, 65, 4096, 100_000, 0], bytes), Enum.map(0..40, bytes)]

      <<_::3, unaligned::binary-size(200), _::5>> = bytes.(201)
      parts = for size <- [0, 7, 64, 65, 150], do: binary_part(bytes.(1000), 13, size)

      others = [
        parts,
        [unaligned, unaligned],
        [<<1, 2, 3::5>>],
        [<<1>> | <<2>>],
        [<<1>> | :no_list],
        [<<1>>, 2],
        [[<<1>>]],
        ["a", :b],
        <<1>>,
        :no_list
      ]

      for list <- lists ++ others,
          most <- [0, 1, 2, 16, 17, 1000, 0xFFFF_FFFF_FFFF_FFFF],
          do: Contract.same(host, :iovec, {most, list})
    end

    test "a queue, whatever is done with it", %{host: host} do
      Contract.same(host, :io_queue_options, [])

      for size <- [1, 64, 65, 66, 1000],
          do: Contract.same(host, :io_queue_head_outlives, :rand.bytes(size))

      Property.check(
        :proper_types.list(step()),
        fn steps -> match?({:value, _}, Contract.same(host, :io_queue, steps)) end,
        numtests: 300,
        max_size: 60
      )
    end

    # Bytes, a list of them, a count, or a look.
    defp step do
      import :proper_types, only: [oneof: 1, list: 1, integer: 2, elements: 1, frequency: 1]
      size = elements([0, 1, 2, 63, 64, 65, 66, 300, 5000])
      bytes = let(size, &binary_part(Process.get(:io_queue_bytes) || bytes(), &1 + 1, &1))
      skip = frequency([{3, 0}, {1, elements([1, 2, 64, 65, 100, 10_000])}])

      oneof([
        {bytes, skip, integer(0, 1)},
        {list(bytes), skip, elements([0, 1, 3, 16, 1000]), integer(0, 4)},
        {oneof([integer(0, 100), integer(0, 10_000)])},
        {}
      ])
    end

    defp bytes, do: tap(:rand.bytes(20_000), &Process.put(:io_queue_bytes, &1))
    defp let(type, fun), do: :proper_types.bind(type, fun, false)
  end

  test "maps: get, put, update, remove", %{host: host} do
    maps = [
      %{},
      %{a: 1},
      Map.new(1..31, &{&1, &1}),
      Map.new(1..32, &{&1, 0}),
      Map.new(1..200, &{&1, 0}),
      :no_map
    ]

    for map <- maps,
        key <- [:a, 1, 1.0, 32, 200, "k", %{}],
        do: Contract.same(host, :maps, {map, key, :new})
  end

  test "maps_of_another_environment", %{host: host} do
    for _ <- 1..3,
        key <- [1, 20, 21, 100, 101, :a],
        do: Contract.same(host, :maps_of_another_environment, key)
  end

  # Keys that are alike: equal numbers, and maps that differ far within only.
  test "map_changes", %{host: host} do
    import :proper_types, only: [integer: 2, elements: 1, list: 1]

    change = {elements([:put, :update, :remove, :get]), integer(0, 300), integer(1, 110)}
    key = &Enum.at([&1, &1 * 1.0, {&1}, %{a: {:b, &1}}, "#{&1}"], rem(&1, 5))

    Property.check(
      {elements([0, 1, 31, 32, 33, 34, 100, 1000]), list(change)},
      fn {len, changes} ->
        changes = for {name, version, n} <- changes, do: {name, version, key.(n), version}
        map = Map.new(1..len//1, &{key.(&1), &1})
        match?({:value, _}, Contract.same(host, :map_changes, {map, changes}))
      end,
      numtests: 300,
      max_size: 120
    )
  end

  # Hours and gigabytes if a change of a large map were a copy of it.
  test "map_of_counts", %{host: host} do
    for len <- [1, 32, 33, 100_000],
        key <- [& &1, &"#{&1}"],
        do: Contract.same(host, :map_of_counts, Enum.map(1..len, key))
  end

  test "map_elsewhere", %{host: host} do
    for len <- [0, 8, 9, 32, 33, 100_000] do
      keys = Enum.to_list(0..(len + 1))
      Contract.same(host, :map_elsewhere, {Map.new(1..len//1, &{&1, &1}), keys})
    end
  end

  test "map_walk", %{host: host} do
    for len <- [0, 1, 3, 32], do: Contract.same(host, :map_walk, Map.new(1..len//1, &{&1, &1}))
    Contract.same(host, :map_walk, Map.new(1..100, &{&1, &1}))
  end

  test "the order of large maps", %{host: host} do
    for len <- [33, 100, 5000],
        key <- [& &1, &"#{&1}", &{&1, :k}, &(&1 * 1.5)],
        do: Contract.same(host, :map_order, Map.new(1..len, &{key.(&1), &1}))
  end

  test "map_of_keys, map_from_arrays", %{host: host} do
    # From OTP 26 on a small map's atoms are in the order in which the VM made them, which a host cannot
    # know of a map that it builds.
    old? = System.otp_release() < "26"

    keys = [
      [],
      [1],
      [1, 1.0, 1],
      Enum.to_list(32..1//-1),
      Enum.to_list(100..1//-1),
      ["b", "a", {}, 2, self()]
    ]

    atoms = [[b: 1, a: 2], [:b, :a, "b", "a", {}, [], 2, 1.5, self()]]

    for list <- keys ++ if(old?, do: atoms, else: []),
        name <- [:map_of_keys, :map_from_arrays],
        do: Contract.same(host, name, list)

    # Up to erts 16.3 the VM took one of two same keys of many (OTP-20098); the manual does not.
    twice = [Enum.to_list(1..100) ++ [50]]
    assert Contract.there(host, :map_from_arrays, twice) == {:value, :duplicate}

    if old? do
      Property.check(:proper_types.list(Terms.small()), fn list ->
        Contract.same(host, :map_of_keys, list)
        Contract.same(host, :map_from_arrays, Enum.take(list, 32))
        true
      end)
    end
  end

  test "what enif_schedule_nif returns is an exception only when it failed", %{host: host} do
    assert {:raise, :badarg} = Contract.same(host, :not_scheduled_is_exception, [])
    assert {:value, {1, 1}} = Contract.same(host, :was_exception_, [])
    assert {:value, {0, 0}} = Contract.same(host, :scheduled_is_no_exception, [])
  end

  test "schedule: chains of hops", %{host: host} do
    for hops <- [0, 1, 10, 1000], do: Contract.same(host, :schedule, hops)
    Contract.same(host, :schedule_garbage, 50)
  end

  test "schedule_odd: both dirty flags at once, and flags that mean nothing", %{host: host} do
    assert {:value, [_, _]} = Contract.same(host, :schedule_odd, 3)
    for flags <- [4, 7, -1], do: Contract.same(host, :schedule_odd, flags)

    for len <- [1, 9, 33, 1000], key <- [1, len, :new] do
      map = Map.new(1..len, &{&1, -&1})
      Contract.same(host, :schedule_map, {map, key, map})
    end
  end

  test "clocks run as the VM's", %{host: host} do
    for _ <- 1..20 do
      before = :erlang.monotonic_time(:millisecond)
      assert {:value, {now, offset, 1}} = Host.call(host, :clocks, [[]])
      assert now in (before - 2)..(:erlang.monotonic_time(:millisecond) + 2)
      assert abs(offset - :erlang.time_offset(:millisecond)) < 2000
    end
  end
end
