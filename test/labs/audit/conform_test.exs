defmodule Tame.Audit.ConformTest do
  # How calls are made, made smaller, compared and told: what needs no VM.
  use ExUnit.Case, async: true

  alias Tame.Audit.Conform
  alias Tame.Audit.Conform.{Cases, Compare, Reason, Smaller, Text}
  alias Tame.Test.CLibrary

  doctest Cases
  doctest Compare
  doctest Reason
  doctest Smaller
  doctest Text

  @f {:m, :f, 1}
  @g {:m, :g, 2}

  defp outcome(did, messages \\ []),
    do: %{did: did, messages: messages, refused: false, references: []}

  defp verdict(vm, again, isolated), do: Compare.verdicts([vm, again, isolated], 1)
  defp ok(did), do: {:ok, {:ok, [outcome(did)]}}
  defp crashed, do: ok({:error, {:tame, {:crashed, %{signal: :sigsegv}}}, {:m, :f, 1}})
  defp ended, do: {:error, "ended the VM with SIGSEGV"}

  test "functions that returned nothing but errors are counted" do
    row = fn function, values ->
      %{function: function, calls: 20, values: values}
      |> Map.merge(Map.new(~w(equal contained varies unseen differs)a, &{&1, 0}))
    end

    library = %{module: "m", path: "m.so", differences: [], scenarios: [], notes: []}
    text = &IO.iodata_to_binary(Conform.Format.library(Map.put(library, :functions, &1)))

    assert text.([row.("m:f/1", 0), row.("m:g/2", 3)]) =~
             "1 of 2 functions returned nothing but errors: --inputs"

    refute text.([row.("m:g/2", 3)]) =~ "nothing but errors"
    refute text.([%{row.("m:random/0", 0) | varies: 20}]) =~ "nothing but errors"
  end

  describe "verdicts" do
    test "the same is equal, whatever it is" do
      for one <- [ok({:value, 1}), ok({:error, :badarg, @f}), {:ok, {:error, :hangs}}],
          do: assert(verdict(one, one, one) == [:equal])
    end

    test "a value, an exception, a message that is another" do
      a = ok({:value, 1})
      raises = ok({:error, :badarg, @f})
      sends = {:ok, {:ok, [outcome({:value, 1}, [:a])]}}
      assert [{:differs, :value, "1", "2"}] = verdict(a, a, ok({:value, 2}))
      assert [{:differs, :exception, "1", "raises badarg in m:f/1"}] = verdict(a, a, raises)
      assert [{:differs, :messages, "1", "1 and sends [a]"}] = verdict(a, a, sends)
      lists = for l <- [[1, [2, 3]], [[3, 2], 1]], do: ok({:value, {:ok, l}})
      assert [{:differs, :order, _, _}] = verdict(hd(lists), hd(lists), List.last(lists))
      large = for n <- 1..2, do: ok({:value, {:"$large", 3000, <<n::128>>, <<0::128>>}})

      assert [{:differs, :order, "a term of 3000 bytes, md5 00000000", _}] =
               verdict(hd(large), hd(large), List.last(large))

      # The same number is not the same term.
      assert [{:differs, :value, _, _}] = verdict(a, a, ok({:value, 1.0}))
    end

    test "what varies has to have the same form" do
      assert verdict(ok({:value, {:ok, 1}}), ok({:value, {:ok, 2}}), ok({:value, {:ok, 3}})) == [
               :varies
             ]

      assert [{:differs, :exception, "{ok,1}, or {ok,2}", _}] =
               verdict(ok({:value, {:ok, 1}}), ok({:value, {:ok, 2}}), ok({:error, :badarg, @f}))
    end

    test "an end of the VM is contained by an exception, and a difference without one" do
      assert verdict(ended(), ended(), crashed()) == [:contained]
      assert [{:differs, :crash, _, "1"}] = verdict(ended(), ended(), ok({:value, 1}))

      assert [{:differs, :crash, "1", "its host died of sigsegv"}] =
               verdict(ok({:value, 1}), ok({:value, 1}), crashed())

      assert verdict(ended(), ok({:value, 1}), crashed()) == [:varies]
    end

    test "an end of the VM that asks hosts is always a difference" do
      for vm <- [ok({:value, 1}), ended()],
          do: assert([{:differs, :vm, _, _}] = verdict(vm, vm, ended()))
    end

    test "which of several calls ended the VM is known by the exception" do
      {:ok, {:ok, [one]}} = ok({:value, 1})
      {:ok, {:ok, [crash]}} = crashed()
      isolated = {:ok, {:ok, [one, crash, one]}}
      assert Compare.verdicts([ended(), ended(), isolated], 3) == [:unseen, :contained, :unseen]

      assert [:unseen, {:differs, :crash, _, "1"}] =
               Compare.verdicts([ended(), ended(), {:ok, {:ok, [one, one]}}], 2)
    end

    test "what comes after a difference is not seen" do
      [one, two] = for n <- 1..2, do: outcome({:value, n})
      vm = {:ok, {:ok, [one, one, one]}}

      assert [:equal, {:differs, :value, _, _}, :unseen] =
               Compare.verdicts([vm, vm, {:ok, {:ok, [one, two, one]}}], 3)
    end
  end

  describe "cases" do
    test "the same seed draws the same, another one others" do
      cases = Cases.new([@f, @g], [{@f, ["sample"]}], [:word])

      draw = fn seed ->
        :rand.seed(:exsss, seed)
        for _ <- 1..50, f <- [@f, @g], do: Cases.draw(cases, f)
      end

      assert draw.(1) == draw.(1)
      assert draw.(1) != draw.(2)
      assert Enum.any?(draw.(1), &(&1 == [{@f, [{:term, "sample"}]}]))
      for steps <- draw.(1), {{_, _, arity}, args} <- steps, do: assert(length(args) == arity)
    end

    test "a reference that one returned is given to others" do
      :rand.seed(:exsss, 1)
      maker = [{@f, [{:term, 1}]}]
      answers = [%{refused: false, references: [[2]]}]
      cases = [@f, @g] |> Cases.new([], []) |> Cases.learn(maker, answers)
      assert Cases.makers(cases) == [maker]
      drawn = for _ <- 1..100, do: Cases.draw(cases, @g)
      assert Enum.any?(drawn, &match?([{@f, [{:term, 1}]}, {@g, [{:step, 1, [2]}, _]}], &1))
    end

    test "what was refused is not grown from" do
      cases = Cases.new([@f], [], [])
      refused = [%{refused: true, references: []}]
      assert Cases.learn(cases, [{@f, [:self]}], refused) == cases
    end
  end

  test "a case becomes smaller for as long as it shows the same" do
    steps = [{@f, [{:term, "unneeded"}]}, {@g, [{:term, "12345x6789"}, {:term, [1, 2, 3]}]}]

    shows = fn steps, asked ->
      {match?({@g, [{:term, t}, _]} when is_binary(t), List.last(steps)) and has_x?(steps),
       asked + 1}
    end

    assert {[{@g, [{:term, "x"}, {:term, []}]}], asked} = Smaller.case(steps, 0, shows)
    assert asked <= 60
  end

  defp has_x?(steps),
    do: steps |> List.last() |> elem(1) |> hd() |> elem(1) |> String.contains?("x")

  test "a call whose value a later one needs stays, and is renumbered" do
    steps = [{@f, [:self]}, {@f, [:self]}, {@g, [{:step, 2, [1]}, :self]}]
    assert Smaller.candidates(steps) == [[{@f, [:self]}, {@g, [{:step, 1, [1]}, :self]}]]
  end

  test "every kind of difference has a sentence" do
    for kind <- Compare.kinds() do
      found = %{kind: kind, in_vm: "1", isolated: "2", repeats: true}
      assert String.length(Reason.sentence(found)) > 40
      assert Reason.sentence(%{found | repeats: false}) =~ "not seen when it was called alone"
    end
  end

  test "what is not accepted is left" do
    library = %{
      module: "m",
      functions: [%{function: "m:f/1"}],
      differences: [%{function: "m:f/1", kind: :value}, %{function: "m:f/1", kind: :crash}],
      scenarios: [%{scenario: "owners", status: :differs}, %{scenario: "callers", status: :ok}]
    }

    accepted = [%{text: "m:f/1", verdict: :value, date: ~D[2026-11-23], reason: "r"}]

    assert Conform.unexplained(%{libraries: [library]}, accepted) == [
             {"m", :scenario},
             {"m:f/1", :crash}
           ]
  end

  test "a file of inputs that is wrong is one line with the entry" do
    path = Path.join(CLibrary.tmp_dir!(), "inputs.exs")

    for {text, expected} <- [
          {~s([{"m:f/2", [1]}]), "m:f/2: expected a list of 2 arguments, got 1"},
          {~s([{"m:f", [1]}]), "m:f: expected a function as module:function/arity"},
          {~s([:a]), ~s(expected {"module:function/arity", [argument]}, got: :a)},
          {~s([]), "expected a list of functions with their arguments, got: []"}
        ] do
      File.write!(path, text)
      assert {:error, line} = Conform.Samples.read(path)
      assert line == "#{path}: #{expected}"
    end
  end
end
