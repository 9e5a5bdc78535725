defmodule Tame.RuntimeStructureTest do
  # Which folder of src/ may call which, by the imports of the compiled modules.
  use ExUnit.Case, async: true

  # From the ground up. A module calls modules of its own folder and of floors below; two folders on one
  # floor do not call each other.
  @floors [
    [base: ~w(tame_fd_readers tame_native tame_orphan tame_otp_features tame_signal tame_text)],
    [ring: "src/ring", job: "src/job"],
    [isolate: "src/isolate"],
    [top: ~w(tame tame_app tame_sup)]
  ]

  test "no module calls one of a folder beside it or above it" do
    sources = Path.wildcard("../src/**/*.erl")
    rooms = Map.new(sources, &{module(&1), room(&1)})

    height =
      for {floor, height} <- Enum.with_index(@floors),
          {room, _} <- floor,
          into: %{},
          do: {room, height}

    assert for({module, nil} <- rooms, do: module) == [], "a module of src/ that has no floor"

    wrong =
      for {module, room} <- rooms,
          called <- called(module),
          is_map_key(rooms, called),
          below = rooms[called],
          below != room and height[below] >= height[room] do
        "#{module} (#{room}) calls #{called} (#{below})"
      end

    assert wrong == [], Enum.join(Enum.sort(wrong) ++ ["", "The floors:" | drawing(rooms)], "\n")
  end

  test "each folder is used: a call from above reaches it" do
    for {above, below} <- [tame: :tame_async, tame_host: :tame_ring, tame_ring_nif: :tame_native] do
      assert below in called(above)
    end
  end

  defp module(source), do: source |> Path.basename(".erl") |> String.to_atom()

  defp room(source) do
    Enum.find_value(List.flatten(@floors), fn
      {room, folder} when is_binary(folder) -> if Path.dirname(source) == "../" <> folder, do: room
      {room, names} -> if Path.basename(source, ".erl") in names, do: room
    end)
  end

  defp called(module) do
    {:ok, {_, imports: imports}} = :beam_lib.chunks(:code.which(module), [:imports])
    Enum.uniq(for {called, _, _} <- imports, do: called)
  end

  defp drawing(rooms) do
    for floor <- Enum.reverse(@floors) do
      Enum.map_join(floor, " | ", fn {room, _} ->
        "#{room}: #{for({module, ^room} <- rooms, do: module) |> Enum.sort() |> Enum.join(" ")}"
      end)
    end
  end
end
