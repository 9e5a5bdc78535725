defmodule Tame.ControlTest do
  # The frames of a host's control port: what is right is read, cut anywhere; what is not is one sentence, and leaves
  # nothing in the VM.
  use ExUnit.Case, async: true

  alias Tame.ControlScenarios
  alias Tame.Test.{ControlFrames, ExternalForms, Growth, PeerVm}

  @protocol 4

  defp read(data), do: :tame_control.feed(data, :tame_control.new())

  test "each right frame is read, whole and in two pieces cut anywhere" do
    for term <- ControlFrames.right(@protocol) do
      bytes = ControlFrames.framed(term)
      assert {:ok, [frame], _} = read(bytes)

      for at <- 0..byte_size(bytes) do
        {first, rest} = :erlang.split_binary(bytes, at)
        {:ok, early, reader} = :tame_control.feed(first, :tame_control.new())
        {:ok, late, _} = :tame_control.feed(rest, reader)
        assert early ++ late == [frame]
      end
    end
  end

  test "a stream of many, one byte at a time" do
    terms = ControlFrames.right(@protocol)
    bytes = terms |> Enum.map(&ControlFrames.framed/1) |> IO.iodata_to_binary()

    {frames, _} =
      for <<byte <- bytes>>, reduce: {[], :tame_control.new()} do
        {frames, reader} ->
          {:ok, more, reader} = :tame_control.feed(<<byte>>, reader)
          {frames ++ more, reader}
      end

    assert length(frames) == length(terms)
  end

  # Linear work takes as long eight times as once for eight times as much, and work in the square an eighth of that.
  test "a frame that comes byte by byte costs in proportion to its length" do
    up = :tame_control.long(:tame_control.new())

    [short, long] =
      for {size, times} <- [{32_768, 8}, {262_144, 1}] do
        frame = ControlFrames.framed({:send, self(), :binary.copy("x", size), []})
        fn -> for _ <- 1..times, do: {[{:send, _, _, [], _}], _} = byte_by_byte(frame, up) end
      end

    assert Growth.ratio(short, long, 3) < 3
  end

  defp byte_by_byte(frame, reader) do
    for <<byte <- frame>>, reduce: {[], reader} do
      {[], reader} ->
        {:ok, frames, more} = :tame_control.feed(<<byte>>, reader)
        {frames, more}
    end
  end

  test "a hello with another protocol says which, where that is short" do
    for {protocol, words} <- [
          {@protocol - 1, "hello with protocol #{@protocol - 1}, "},
          {-1, "hello with protocol that is no number from 0 to 4294967295, "},
          {4_294_967_296, "hello with protocol that is no number"},
          {:binary.decode_unsigned(:binary.copy(<<255>>, 100_000)), "that is no number"},
          {:three, "that is no number"},
          {[], "that is no number"}
        ] do
      assert {:bad, [], sentence} = read(ControlFrames.framed({:hello, protocol, 7, %{}}))
      assert to_string(sentence) =~ words

      assert to_string(sentence) =~
               "and this is #{@protocol}: tame and tame_host are of different versions"

      assert length(sentence) < 200
    end
  end

  test "wrong shapes, sizes and counts are refused in a sentence of one line" do
    wrong = ControlFrames.wrong(@protocol)

    {accepted, refused} =
      Enum.split_with(wrong, fn term ->
        case read(ControlFrames.framed(term)) do
          {:bad, [], sentence} ->
            assert length(sentence) < 200 and ?\n not in sentence
            false

          {:ok, [_], _} ->
            true
        end
      end)

    # The rest have the right shape, and say what tame_host does not believe: other functions than the library has, a
    # descriptor that is no ring, a lease that is none. Text is made printable where it is printed.
    kinds = accepted |> Enum.map(&elem(&1, 0)) |> Enum.uniq() |> Enum.sort()

    assert kinds --
             [:ended, :hello, :loaded, :pong, :query, :refused, :ring, :ring_refused, :send] ==
             []

    assert length(accepted) <= 25 and length(refused) > 100
  end

  test "what is right before what is bad counts" do
    data = ControlFrames.framed({:pong, 1}) <> ControlFrames.framed({:pong, -1}) <> "rest"
    assert {:bad, [{:pong, 1}], _} = read(data)
  end

  test "long frames are refused by their length, before they are read; longer ones may come when it has a ring" do
    assert {:bad, [], sentence} = read(<<0xFFFF_FFFF::32>>)
    assert to_string(sentence) == "a frame of 4294967295 bytes, and 1048576 are the most"
    assert {:ok, [], _} = read(<<1_048_576::32>>)
    assert {:bad, [], _} = read(<<1_048_577::32>>)
    up = :tame_control.long(:tame_control.new())
    message = ControlFrames.framed({:send, self(), :binary.copy("x", 10_000_000), []})
    assert {:ok, [{:send, _, _, [], _}], _} = :tame_control.feed(message, up)
    assert {:bad, [], _} = :tame_control.feed(<<67_108_865::32>>, up)
    # 60 MiB of empty lists would be 1 GiB of heap.
    empty = [
      <<131, 104, 4, 119, 4, "send">>,
      binary_part(
        :erlang.term_to_binary(self()),
        1,
        byte_size(:erlang.term_to_binary(self())) - 1
      )
    ]

    count = 60 * 1_048_576
    nils = IO.iodata_to_binary([empty, <<108, count::32>>, :binary.copy(<<106>>, count + 1), 106])
    assert {:bad, [], sentence} = :tame_control.feed(ControlFrames.framed_bytes(nils), up)
    assert to_string(sentence) =~ "bytes of memory"
  end

  test "forms that no VM may decode are refused without decoding" do
    for {name, bytes} <- ExternalForms.deadly() do
      assert {:error, :references} == :tame_ring.scan(bytes), inspect(name)
      assert {:bad, [], _} = read(ControlFrames.framed_bytes(bytes)), inspect(name)
    end

    # References as they are, also many in a large map beside ones of five words, and one of these twice.
    long = fn last ->
      words = for word <- [1, 2, 3, 4, last], into: "", do: <<word::32>>
      :erlang.binary_to_term(<<131, 90, 5::16, 119, 8, "some@one", 1::32, words::binary>>)
    end

    large = Map.new(1..100, &{make_ref(), &1})

    for map <- [large, Map.put(large, long.(5), [long.(5), make_ref()]), %{long.(5) => long.(6)}] do
      assert {:ok, _} = :tame_ring.scan(:erlang.term_to_binary(map))
    end

    # Not as keys, but who knows what becomes of them.
    assert {:error, :references} =
             :tame_ring.scan(:erlang.term_to_binary({large, long.(5), long.(6)}))

    many = {large, long.(5), for(_ <- 1..5000, do: make_ref())}
    assert {:error, :references} = :tame_ring.scan(:erlang.term_to_binary(many))
  end

  test "identifiers of a bounded number of nodes are taken, in one frame and in all" do
    up = :tame_control.long(:tame_control.new())
    framed = &ControlFrames.framed_bytes(ExternalForms.of_nodes(:some@one, &1, {:pong, 1}))
    own = ControlFrames.framed({:send, self(), [self(), make_ref()], []})

    reader =
      for _ <- 1..5000, reduce: up do
        reader -> with({:ok, [_], reader} <- :tame_control.feed(own, reader), do: reader)
      end

    assert {:bad, [], sentence} = :tame_control.feed(framed.(1..1100), reader)
    assert to_string(sentence) == "pids, ports and references of more than 1024 nodes in a minute"

    {seen, _} =
      Enum.flat_map_reduce(1..1100, reader, fn n, reader ->
        send = {:send, self(), :erlang.binary_to_term(ExternalForms.of_nodes(:some@one, n..n)), []}

        case :tame_control.feed(ControlFrames.framed(send), reader) do
          {:ok, [_], reader} -> {[:ok], reader}
          {:bad, [], _} -> {:halt, reader}
        end
      end)

    # Our own node's name is one.
    assert length(seen) == 1023
  end

  # Atoms are counted, and memory: in a VM of its own, where nobody else makes any.
  test "hostile external forms of every kind are refused or harmless, and make no atom" do
    {kinds, wrong, atoms} = PeerVm.scenario(PeerVm.start_link(), ControlScenarios, :hostile)
    for {name, kind} <- kinds, do: assert(kind in [:bad, :ok], inspect(name))
    assert wrong == []
    assert atoms < 50
  end

  test "a million frames with mistakes: each stream goes on or is bad, and nothing is left" do
    seed = ExUnit.configuration()[:seed]

    {seen, atoms, memory} =
      :peer.call(PeerVm.start_link(), ControlScenarios, :million, [seed], 280_000)

    assert atoms < 100
    assert memory < 100_000_000
    assert seen.frames > 50_000 and seen.bad > 50_000, inspect(seen)
  end

  test "what a host says as text is fit for a log" do
    assert :tame_control.printable("plain\nlines", 100) == "plain\nlines"
    assert :tame_control.printable(<<0, 27, "[31m", 200, 255>>, 100) == "..[31mÈÿ"
    assert :tame_control.printable("日本", 4) == "日"
    assert byte_size(:tame_control.printable(:binary.copy("x", 1_000_000), 1000)) == 1000
  end
end
