defmodule Tame.Audit.PureTest do
  # Names, inputs, fits, differences: what needs no peer.
  use ExUnit.Case, async: true

  alias Tame.Audit.{Diff, Growth, Input, Leak, Library, Target}

  doctest Tame.Audit.Baseline
  doctest Tame.Audit.Diff
  doctest Tame.Audit.Growth
  doctest Tame.Audit.Held
  doctest Tame.Audit.Input
  doctest Tame.Audit.Leak
  doctest Tame.Audit.Library
  doctest Tame.Audit.Peer
  doctest Tame.Audit.Target
  doctest Tame.Audit.Verdict

  test "a word is a function, a file, a folder, an application or a module" do
    assert Target.parse("Elixir.My.Nif:run/2") == {:ok, {:function, {My.Nif, :run, 2}}}
    assert Target.parse("My.Nif.run/2") == {:ok, {:function, {My.Nif, :run, 2}}}
    assert Target.parse(":lists.seq/2") == {:ok, {:function, {:lists, :seq, 2}}}
    assert Target.parse("/tmp/") == {:ok, {:folder, "/tmp/"}}
    assert Target.parse("crypto") == {:ok, {:application, :crypto}}
    assert Target.parse("tame_exor") == {:ok, {:module, :tame_exor}}
    assert Target.parse("Tame.Audit") == {:ok, {:module, Tame.Audit}}
    assert {:error, "nope_nope: no application" <> _} = Target.parse("nope_nope")
    assert {:error, "there is no folder no/such"} = Target.parse("no/such")
    assert {:error, _} = Target.parse(String.duplicate("a", 300))
  end

  test "an input is generators, or terms with commas in them" do
    assert {:ok, {_, [{:literal, {:a, [1, 2]}}, :list]}} = Input.parse("={a,[1,2]},list")
    assert {:error, "--input ={a: ={a is no Erlang term"} = Input.parse("={a")
    assert {:error, "--input-file no.exs: there is no such file"} = Input.file("no.exs")
  end

  test "every generator makes what it says, about as large as it is asked" do
    for name <- Input.names() do
      {:ok, [term]} = :tame_audit_input.args([name], 10_000, 1)
      bytes = if name in [:list, :map, :term], do: 10_000, else: size(term)
      assert_in_delta bytes, 10_000, 1000, "#{name}"
    end

    assert {:ok, [_, _]} = :tame_audit_input.args([:utf8], 100, 2)
    assert :tame_audit_input.make(:utf8, 1001) |> String.valid?()
    assert {:ok, _} = :tame_json.decode(:tame_audit_input.make(:json, 3000))

    assert {:error, "has 3 generators for 2 arguments"} =
             :tame_audit_input.args([:map, :map, :map], 1, 2)
  end

  defp size(term) when is_integer(term), do: byte_size(:binary.encode_unsigned(term))
  defp size(term), do: IO.iodata_length(term)

  test "noise about the line lowers the fit, a flat line has exponent 0" do
    sizes = for n <- 5..12, do: Integer.pow(4, n)

    noisy =
      for {bytes, i} <- Enum.with_index(sizes),
          do: {bytes, 0.1 * bytes * if(rem(i, 2) == 0, do: 1.3, else: 0.7)}

    assert %{exponent: exponent, fit: fit} = Growth.fit(noisy)
    assert_in_delta exponent, 1.0, 0.1
    assert fit > 0.9 and fit < 1.0
    assert_in_delta Growth.fit(for(bytes <- sizes, do: {bytes, 100.0})).exponent, 0.0, 1.0e-9
  end

  test "only the last crossing counts" do
    assert Growth.crosses([{1, 900}, {10, 5}, {100, 50}, {1000, 5000}], 500) in 101..999
  end

  defp in_use(growth, who \\ :erlang),
    do: growth |> Enum.scan(1_000_000, &(&1 + &2)) |> Enum.map(&%{who => &1})

  test "a leak grows alike in every round; a cache, a carrier and a doubling table do not" do
    leak = [900_000, 90_000, 80_000, 80_000, 80_000, 80_000]
    assert %{per_call: 80.0, calls: 4000} = Leak.judge(in_use(leak), 1000)
    assert %{per_call: 80.0} = Leak.judge(in_use(leak, :malloc), 1000)
    # Those who count pages have their own noise.
    assert Leak.judge(in_use(leak, :process), 1000) == nil

    for growth <- [
          [80_000, 80_000, 80_000, 80_000, 80_000, 0],
          [0, 0, 0, 8_000_000, 0, 0],
          [0, 0, 80_000, 160_000, 320_000, 640_000],
          [100, 100, 100, 100, 100, 100],
          [80_000, 80_000, 80_000, -80_000, 80_000, 80_000]
        ],
        do: assert(Leak.judge(in_use(growth), 1000) == nil, inspect(growth))

    assert Leak.judge(List.duplicate(%{erlang: 1, malloc: :undefined, process: :undefined}, 6), 9) ==
             nil
  end

  test "descriptors that are kept are one too" do
    assert {:ok, %{per_call: 1.0, what: "descriptors", calls: 40}} =
             Leak.descriptors(fn %{calls: 10} ->
               {:ok, in_use(List.duplicate(10, 6), :descriptors)}
             end)

    for growth <- [[0, 0, 0, 0, 0, 0], [10, 10, 10, 1, 0, 1], [9, 0, 0, 0, 0, 9]],
        readings = in_use(growth, :descriptors),
        do: assert(Leak.descriptors(fn _ -> {:ok, readings} end) == {:ok, nil})

    assert Leak.descriptors(fn _ -> {:error, "raised"} end) == {:error, "raised"}
  end

  test "what looks like a leak is looked at again, and only then one" do
    leak = in_use(List.duplicate(80_000, 6))
    full = in_use(List.duplicate(0, 6))

    rounds = fn answers ->
      {:ok, agent} = Agent.start_link(fn -> answers end)
      fn what -> Agent.get_and_update(agent, fn [now | later] -> {now.(what), later} end) end
    end

    first = fn %{calls: 1000} -> {:ok, leak} end
    assert Leak.look(40.0, rounds.([first, fn %{calls: 4000} -> {:ok, full} end])) == {:ok, nil}

    assert {:ok, %{per_call: 20.0, calls: 16_000}} =
             Leak.look(40.0, rounds.([first, fn _ -> {:ok, leak} end]))

    # A little in every round is looked at in longer rounds.
    little = in_use(List.duplicate(3000, 6), :malloc)
    more = in_use(List.duplicate(24_000, 6), :malloc)
    twice = [fn %{calls: 1000} -> {:ok, little} end, fn %{calls: 8000} -> {:ok, more} end]
    assert {:ok, %{per_call: 3.0, what: "bytes"}} = Leak.look(40.0, rounds.(twice))
    assert Leak.look(40.0, rounds.([hd(twice), fn _ -> {:ok, little} end])) == {:ok, nil}

    assert Leak.look(40.0, rounds.([fn _ -> {:ok, full} end])) == {:ok, nil}
    assert Leak.look(40.0, rounds.([first, fn _ -> {:error, "raised"} end])) == {:error, "raised"}
  end

  test "a saved audit with libraries of another shape is refused in a line" do
    path = Path.join(System.tmp_dir!(), "tame_diff_#{System.unique_integer([:positive])}.json")
    on_exit(fn -> File.rm(path) end)
    whole = ~s({"module":"m","nif_version":null,"can":{"yields":true,"min_erts":null},"functions":)

    for {libraries, right?} <- [
          {"[]", true},
          {~s([#{whole}[{"name":"f","arity":1,"kind":"normal"}]}]), true},
          {"5", false},
          {"[7]", false},
          {~s([{"module":5}]), false},
          {~s([{"module":"m"}]), false},
          {"[#{whole}null}]", false},
          {"[#{whole}[7]}]", false},
          {~s([#{whole}[{"name":7,"arity":1,"kind":"normal"}]}]), false}
        ] do
      File.write!(path, ~s({"tool":"tame.audit","format":1,"libraries":#{libraries}}))

      case Diff.read(path) do
        {:ok, _} -> assert right?, libraries
        {:error, why} -> assert {libraries, right?, why =~ path} == {libraries, false, true}
      end
    end
  end

  test "a change of any part of a library is a line" do
    old = [
      %{"module" => "gone", "nif_version" => "2.16", "can" => %{}, "functions" => []},
      %{
        "module" => "m",
        "nif_version" => "2.16",
        "can" => %{"min_erts" => :null},
        "functions" => [%{"name" => "a", "arity" => 1, "kind" => "normal"}]
      }
    ]

    new = %Library{
      module: "m",
      path: "m.so",
      nif_version: "2.17",
      can: [min_erts: nil],
      functions: [%{name: "b", arity: 2, kind: :dirty_io}]
    }

    assert Diff.lines(old, [new]) == [
             "gone: gone",
             "m: a/1 is gone",
             "m: b/2 is new, dirty_io",
             "m: NIF version was 2.16 and is 2.17"
           ]
  end
end
