defmodule Tame.IsolateOptionsTest do
  # The table of options: that its type and the guide say the same, and what it accepts and refuses.
  use ExUnit.Case, async: true

  @guide File.read!("../docs/guide/isolate.md")

  defp table, do: :tame_isolate_options.table()

  test "the guide's table has the same options with the same defaults" do
    [_, rows] = Regex.run(~r/^## Options\n\n\| option .*?\n\| --- .*?\n(.*?)\n\n/ms, @guide)

    guide =
      for row <- String.split(rows, "\n") do
        ["", name, default, says, ""] = row |> String.split("|") |> Enum.map(&String.trim/1)
        assert says != ""
        {name, default}
      end

    assert Enum.map(guide, &elem(&1, 0)) == for({name, _, _, _} <- table(), do: "`#{name}`")

    for {{_, said}, {name, {:default, default}, _, _}} <- Enum.zip(guide, table()) do
      assert {name, said} == {name, as_written(default)}
    end
  end

  defp as_written(1_073_741_824), do: "1 GiB"

  defp as_written(default) when is_tuple(default) or is_map(default),
    do: "`#{in_erlang(default)}`"

  defp as_written(default), do: in_erlang(default)

  defp in_erlang(term),
    do: ~c"~w" |> :io_lib.format([term]) |> to_string() |> String.replace(",", ", ")

  test "the type has the same options" do
    {:ok, types} = Code.Typespec.fetch_types(:tame_isolate_options)
    [fields] = for {:type, {:options, {:type, _, :map, fields}, []}} <- types, do: fields
    names = for {:type, _, :map_field_assoc, [{:atom, _, name}, _]} <- fields, do: name
    assert Enum.sort(names) == Enum.sort(for {name, _, _, _} <- table(), do: name)
  end

  test "each default is accepted, and what nothing accepts is refused in a sentence" do
    assert {:ok, defaults} = :tame_isolate_options.complete(%{})
    assert :tame_isolate_options.complete(defaults) == {:ok, defaults}
    assert defaults.hosts == {1, 1}

    for {name, default, _, expected} <- table(),
        value <- [nil, -1, 1.5, {}, {2, 1, 0}, make_ref()] do
      assert {:error, {:bad_option, text}} = :tame_isolate_options.complete(%{name => value})
      assert to_string(text) =~ "#{name} => "
      assert to_string(text) =~ ": expected #{expected}"
      assert match?({:default, _}, default) or name in [:share, :library, :host]
    end
  end

  test "values at the bounds, and a step beyond them" do
    for {name, inside, outside} <- [
          {:hosts, [1, 64, {1, 64}, {3, 3}], [0, 65, {0, 1}, {1, 65}, {2, 1}]},
          {:workers, [1, 1024], [0, 1025]},
          {:deadline_ms, [1, 0x80000000, :infinity], [0, 0x80000001]},
          {:answer_ms, [1, :infinity], [0]},
          {:grace_ms, [1], [0, :infinity]},
          {:max_waiting, [0], [-1]},
          {:intensity, [{0, 1}, :infinity], [{-1, 1}, {1, 0}]},
          {:backoff_ms, [{0, 0}, {5, 5}], [{-1, 0}, {5, 4}]},
          {:spin_us, [0, 1000], [1001]},
          {:slot_bytes, [4096, 65_536], [2048, 131_072, 5000]},
          {:area_bytes, [4096, 0x10_0000_0000], [0, 4097, 0x10_0000_1000]},
          {:otherwise, [:fail, :in_vm], [:in_host]},
          {:bind, [:auto, :recompile, :overlay], [:shim]},
          {:library, [~c"a.so", "a.so"], [:a]}
        ] do
      for value <- inside, do: assert({:ok, _} = :tame_isolate_options.complete([{name, value}]))

      for value <- outside,
          do: assert({:error, {:bad_option, _}} = :tame_isolate_options.complete([{name, value}]))
    end
  end

  test "what is no map of options, and a name that there is not" do
    for options <- [:none, [1, 2], {}, "hosts"] do
      assert {:error, {:bad_option, _}} = :tame_isolate_options.complete(options)
    end

    assert {:error, {:bad_option, text}} = :tame_isolate_options.complete(%{host_count: 2})
    assert to_string(text) =~ "no such option; there are answer_ms, area_bytes, "
  end
end
