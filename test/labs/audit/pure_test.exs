defmodule Tame.Audit.PureTest do
  # Names, inputs, fits, differences: what needs no peer.
  use ExUnit.Case, async: true

  alias Tame.Audit.{Diff, Growth, Input, Library, Target}

  doctest Tame.Audit.Diff
  doctest Tame.Audit.Growth
  doctest Tame.Audit.Input
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

    assert {:error, "3 generators for 2 arguments"} =
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
