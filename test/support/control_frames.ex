defmodule Tame.Test.ControlFrames do
  @moduledoc false
  # What a host may say on its control port, and what it may not: a corpus of frames of every kind, and
  # streams of them with mistakes in it. A frame is four bytes of length and one term in external format.

  @names ~w(echo_nif echo_inline_nif echo_dirty_nif echo_yielding_dirty_nif echo_thread_nif echo_pool_nif)

  # What a host says of tame_echo, by the number of the protocol.
  def functions, do: for(name <- @names, do: {name, 1, 0}) ++ [{"$tame", 3, 0}]

  def loaded_info(1), do: %{wants_caller: false}
  def loaded_info(_), do: %{library: 0, wants_caller: false, sends: false, resources: false}

  def framed(term), do: term |> :erlang.term_to_binary() |> framed_bytes()
  def framed_bytes(bytes), do: <<byte_size(bytes)::32, bytes::binary>>

  # Frames that the VM takes, each in its time.
  def right(protocol) do
    [
      {:hello, protocol, 4711, %{workers: 2, nif_version: {2, 16}}},
      {:ring, 5},
      {:ring_refused, "no memory"},
      {:loaded, functions(), loaded_info(protocol)},
      {:unloaded, 3},
      {:refused, :no_such_file, %{}, "there is no such file"},
      {:refused, :missing_functions, %{functions: ["enif_none"]}, "it needs what there is not"},
      {:refused, :load_returned, %{value: -3}, "load returned -3"},
      {:send, self(), {:ok, make_ref()}, []},
      {:send, self(), "text", [1, 2, 3]},
      {:pong, 7},
      {:ended, 11, 0x7F00_DEAD_BEEF, "decode", 2, "#0 decode (jiffy.so+0x1234)\n", "last words",
       :none},
      {:ended, 6, 0, "", 0, "", "", :memory}
      | for(what <- queries(), do: {:query, 12, what})
    ]
  end

  defp queries do
    [
      {:existing_atom, "ok"},
      {:new_atoms, ["an_atom_of_the_corpus"]},
      {:alive, self()},
      {:whereis, "init"},
      {:monitor, 1, self()},
      {:demonitor, 1},
      {:phash2, %{a: [1, 2.0, "three"]}},
      {:flat_size, %{a: [1, 2.0, "three"]}},
      :make_ref,
      {:unique_integer, [:positive, :monotonic]},
      {:port_command, hd(Port.list()), "data"},
      :leases,
      {:hold, 0, [make_ref()]},
      :sync
    ]
  end

  # Each kind in shapes, sizes and counts that it must not have.
  def wrong(protocol) do
    hello(protocol) ++ loading(protocol) ++ talking() ++ asking() ++ ending() ++ nothing()
  end

  defp hello(protocol) do
    info = %{workers: 2, nif_version: {2, 16}}

    for(
      os_pid <- [0, 0.5, :pid, "1", self(), 2 ** 70, -(2 ** 70)],
      do: {:hello, protocol, os_pid, info}
    ) ++
      for(
        number <- [0, 99, -1, 2 ** 80, :one, [], protocol * 1.0],
        do: {:hello, number, 4711, info}
      ) ++
      [
        {:hello, protocol, 4711, []},
        {:hello, protocol, 4711, %{workers: self()}},
        {:hello, protocol, 4711, Map.new(1..5000, &{&1, &1})},
        {:hello, protocol},
        {:hello},
        :hello
      ]
  end

  defp loading(protocol) do
    info = loaded_info(protocol)
    ok = {"echo_nif", 1, 0}

    for(fd <- [-1, 2 ** 31, 2 ** 70, 0, 1, 3, 4, :fd, 3.0, "3", [3]], do: {:ring, fd}) ++
      [{:ring}, {:ring, 1, 2}, {:ring_refused, :none}, {:ring_refused, [[[]] | 1]}] ++
      [{:ring_refused, <<255, 0>>}, {:ring_refused, String.duplicate("long ", 1_000_000)}] ++
      for functions <- [
            :none,
            [ok | :tail],
            [{"", 1, 0}],
            [{String.duplicate("x", 256), 1, 0}],
            [{<<255, 255>>, 1, 0}],
            [{:echo_nif, 1, 0}],
            [{"echo_nif", -1, 0}],
            [{"echo_nif", 256, 0}],
            [{"echo_nif", 2 ** 70, 0}],
            [{"echo_nif", 1}],
            [{"echo_nif", 1, self()}],
            List.duplicate(ok, 3),
            [],
            [{"module_info", 0, 0}],
            Map.new([ok], &{&1, 1})
          ] do
        {:loaded, functions, info}
      end ++
      [
        {:loaded, functions(), %{wants_caller: :maybe, sends: 1, resources: []}},
        {:loaded, functions(), Map.delete(info, :library)},
        {:loaded, functions(), %{info | library: 64}},
        {:loaded, functions(), %{info | library: -1}},
        {:loaded, functions(), %{info | library: :first}},
        {:unloaded, 64},
        {:unloaded, -1},
        {:unloaded, self()},
        {:unloaded, 0, 1},
        {:unloaded},
        {:loaded, functions(), []},
        {:loaded, functions(), %{}},
        {:loaded, functions()},
        {:refused, "no atom", %{}, "text"},
        {:refused, :no_such_file, :details, "text"},
        {:refused, :no_such_file, %{}, [1 | 2]},
        {:refused, :no_such_file, %{}, <<255, 255>>},
        {:refused, :no_such_file, %{}, String.duplicate("long ", 1_000_000)},
        {:refused, :missing_functions, %{functions: Enum.to_list(1..100_000)}, "text"},
        {:refused, :no_such_file}
      ]
  end

  defp talking do
    for(to <- [:init, "pid", 1, make_ref(), hd(Port.list()), [self()]], do: {:send, to, :x, []}) ++
      for(
        leases <- [:none, [1 | 2], [-1], [:one], [2 ** 70], Enum.to_list(1..100_000), [0, 0, 0]],
        do: {:send, self(), :message, leases}
      ) ++
      [
        {:send, self(), :x},
        {:send, self()},
        {:ring_refused, :text},
        {:ring_refused, [1 | 2]},
        {:ring_refused, <<255>>}
      ] ++
      [
        {:ring_refused, String.duplicate("x", 5_000_000)},
        {:ring_refused, <<1::1>>},
        {:ring_refused},
        {:ring_refused, "a", "b"}
      ] ++
      for(number <- [-1, 0, 2 ** 70, :one, "1", 1.0], do: {:pong, number}) ++ [{:pong}, :pong]
  end

  defp asking do
    improper = ["a" | "b"]

    for(id <- [-1, 2 ** 64, 2 ** 4000, :id, "1", 1.0, []], do: {:query, id, :sync}) ++
      for what <- [
            {:existing_atom, <<255, 255>>},
            {:existing_atom, String.duplicate("é", 300)},
            {:existing_atom, :atom},
            {:existing_atom, String.duplicate("x", 3_000_000)},
            {:new_atoms, [<<255, 255>>]},
            {:new_atoms, [String.duplicate("x", 256)]},
            {:new_atoms, improper},
            {:new_atoms, :names},
            {:new_atoms, [1]},
            {:unique_integer, :value},
            {:unique_integer, [:value]},
            {:unique_integer, [:positive | :monotonic]},
            {:whereis, 1},
            {:whereis, <<255>>},
            {:whereis, ""},
            {:alive, :init},
            {:alive, "x"},
            {:monitor, 1, :init},
            {:monitor, 1, "pid"},
            {:monitor, self(), self()},
            {:monitor, 2 ** 70, self()},
            {:monitor, 1, {:init, node()}},
            {:demonitor, 12_345},
            {:demonitor, make_ref()},
            {:demonitor, self()},
            {:port_command, :port, "x"},
            {:port_command, hd(Port.list()), improper},
            {:port_command, hd(Port.list()), :data},
            {:port_command, 1, 2},
            {:hold, 0, [1]},
            {:hold, 0, :refs},
            {:hold, 0, [make_ref() | :tail]},
            {:hold, :call, []},
            {:hold, 0, for(_ <- 1..10_000, do: make_ref())},
            {:phash2},
            {:leases, 1},
            :unknown,
            {:restore, :tame_echo},
            []
          ] do
        {:query, 1, what}
      end ++ [{:query, 1}, {:query}, {:query, 1, :sync, 1}, {:answer, 1, :ok}, {:reply, 1, :ok, []}]
  end

  defp ending do
    [
      {:ended, 11, 0, "", 0, "", "", :none},
      {:ended, 11, 0, "", 0, "", ""},
      {:ended, 11, 0, "", 0, "", "", :disk},
      {:ended, -1, -1, :name, -1, 0, 0, 0},
      {:ended, 2 ** 70, 2 ** 70, <<255>>, 2 ** 70, <<255>>, <<255>>, <<255>>},
      {:ended, 11, 0, "", 0, String.duplicate("x", 100_000), String.duplicate("x", 100_000), :none},
      {:ended, 0},
      :ended
    ]
  end

  defp nothing, do: [[], {}, "", 0, 0.5, :stop, %{}, self(), fn -> :ok end, {{}}, {[], []}]

  # Bytes that are no term, or none that the VM may make.
  def no_terms do
    big = :binary.copy(<<0>>, 50_000_000)
    list = &<<131, 104, 2, 119, 4, "pong", 108, &1::32>>

    [
      "",
      <<131>>,
      <<130, 106>>,
      "not a term at all",
      <<131, 119, 5, "hello", 0>>,
      :erlang.term_to_binary({:ring_refused, big}, [:compressed]),
      # It says that it holds a byte more than it does, or less, or 4 GiB.
      compressed(101, :binary.copy(<<0>>, 100)),
      compressed(99, :binary.copy(<<0>>, 100)),
      compressed(0xFFFF_FFFF, :binary.copy(<<0>>, 100)),
      list.(0xFFFF_FFFF),
      <<131, 105, 0xFFFF_FFFF::32>>,
      <<131, 116, 0xFFFF_FFFF::32>>,
      <<131, 109, 0xFFFF_FFFF::32>>,
      <<131, 111, 0xFFFF_FFFF::32, 0>>,
      # An atom that this VM has not, as long as one may be, and longer.
      <<131, 119, 17, "no_vm_knows_this1">>,
      <<131, 104, 2, 119, 17, "no_vm_knows_this2", 106>>,
      <<131, 118, 300::16, :binary.copy("x", 300)::binary>>,
      <<131, 104, 2, 119, 4, "pong", 119, 2, 255, 255>>,
      # A list in a list in a list.
      <<131, :binary.copy(<<108, 1::32>>, 1_000_000)::binary,
        :binary.copy(<<106>>, 1_000_001)::binary>>,
      # A key twice.
      <<131, 116, 2::32, 97, 1, 97, 1, 97, 1, 97, 2>>,
      :erlang.term_to_binary({:pong, 1}) <> "and more",
      # A number of 64 MiB in bits.
      <<131, 104, 2, 119, 4, "pong", 111, 8_388_608::32, 0,
        :binary.copy(<<255>>, 8_388_608)::binary>>
    ]
  end

  defp compressed(said, bytes) do
    body = <<109, byte_size(bytes)::32, bytes::binary>>
    <<131, 80, said::32, :zlib.compress(body)::binary>>
  end

  # The frames of right/1 with mistakes in them, this many, as an endless run would have them: repeated, out
  # of order, cut, with bits turned, put into each other. A list of binaries; what the seed says.
  def mutated(seed, count, corpus) do
    frames = List.to_tuple(corpus)
    {chunks, _} = Enum.map_reduce(1..count//1, :rand.seed_s(:exsss, seed), &mutant(frames, &1, &2))
    chunks
  end

  # The corpus as bytes, once, for mutated/3.
  def corpus(protocol), do: for(term <- right(protocol), do: :erlang.term_to_binary(term))

  defp mutant(frames, _number, state) do
    {which, state} = :rand.uniform_s(tuple_size(frames), state)
    {how, state} = :rand.uniform_s(10, state)
    frame = elem(frames, which - 1)
    {at, state} = :rand.uniform_s(byte_size(frame), state)
    {value, state} = :rand.uniform_s(256, state)
    {mutant(how, frame, at - 1, value - 1, frames), state}
  end

  # One byte is another.
  defp mutant(how, frame, at, value, _) when how in 1..3 do
    {first, <<_, rest::binary>>} = :erlang.split_binary(frame, at)
    framed_bytes(<<first::binary, value, rest::binary>>)
  end

  # A bit is turned.
  defp mutant(how, frame, at, value, _) when how in 4..5 do
    {first, <<byte, rest::binary>>} = :erlang.split_binary(frame, at)
    turned = Bitwise.bxor(byte, Bitwise.bsl(1, rem(value, 8)))
    framed_bytes(<<first::binary, turned, rest::binary>>)
  end

  # Its end is missing, and its length says so, or does not.
  defp mutant(6, frame, at, _, _), do: framed_bytes(binary_part(frame, 0, at))
  defp mutant(7, frame, at, _, _), do: binary_part(framed_bytes(frame), 0, at)

  # It goes on with another.
  defp mutant(8, frame, at, value, frames) do
    other = elem(frames, rem(value, tuple_size(frames)))
    framed_bytes(binary_part(frame, 0, at) <> binary_part(other, 1, byte_size(other) - 1))
  end

  # It is right, once or twice, where it does not belong.
  defp mutant(9, frame, _, _, _), do: framed_bytes(frame)
  defp mutant(10, frame, _, _, _), do: framed_bytes(frame) <> framed_bytes(frame)

  # A long stream of such, against whatever reads one as tame_control does: new.() is its state, and feed.(data, state)
  # comes to {:ok, frames, state} or {:bad, frames, sentence}. The stream comes in pieces that
  # begin and end anywhere; after bad a new state goes on with the next frame, as a new host would.
  # %{frames: how many were let through, bad: how often it was bad, sentences: some of them}
  def play(new, feed, seed, count, corpus) do
    :rand.seed(:exsss, seed)
    start = %{frames: 0, bad: 0, sentences: MapSet.new()}

    Enum.reduce(1..count//1000, {new.(), start}, fn first, sofar ->
      mutated(seed + first, min(1000, count - first + 1), corpus)
      |> Enum.chunk_every(3)
      |> Enum.reduce(sofar, &feed_pieces(pieces(&1), new, feed, &2))
    end)
    |> elem(1)
  end

  # Three frames as two pieces.
  defp pieces(frames) do
    bytes = IO.iodata_to_binary(frames)
    {first, rest} = split(bytes, :rand.uniform(byte_size(bytes) + 1) - 1)
    [first, rest]
  end

  defp split(bytes, at) do
    {binary_part(bytes, 0, at), binary_part(bytes, at, byte_size(bytes) - at)}
  end

  defp feed_pieces([], _, _, sofar), do: sofar

  defp feed_pieces([piece | pieces], new, feed, {state, seen}) do
    case feed.(piece, state) do
      {:ok, frames, state} ->
        feed_pieces(pieces, new, feed, {state, %{seen | frames: seen.frames + length(frames)}})

      {:bad, frames, sentence} ->
        sentences =
          if MapSet.size(seen.sentences) < 1000,
            do: MapSet.put(seen.sentences, to_string(sentence)),
            else: seen.sentences

        {new.(),
         %{seen | frames: seen.frames + length(frames), bad: seen.bad + 1, sentences: sentences}}
    end
  end
end
