defmodule Tame.Labs.StructureTest do
  # Which folder of the labs may name which: derived from the compiled modules, in which a module that is called, or
  # passed on to be called, stands as an atom.
  use ExUnit.Case, async: true

  @shared ~w(report jobs shared)
  @labs ~w(latency reductions contention isolation load native_io collapse audit watch calibrate doctor digest)

  # Downward only. A lab knows no other lab; what two of them need is in one of the shared folders. Tasks are the doors:
  # each may open its lab, and tame.report collects them all.
  @floors Map.merge(
            %{
              "tasks" => @labs ++ @shared,
              "report" => ["shared"],
              "jobs" => ["shared"],
              "shared" => []
            },
            Map.new(@labs, &{&1, @shared})
          )

  # A folder that names one it should not, as {from, to}, each with its reason: calls by size are methods of the latency
  # lab in its turns, and cells those of the contention lab; a second way to measure them would be a second answer.
  @exceptions [{"isolation", "latency"}, {"native_io", "latency"}, {"native_io", "contention"}]

  test "every folder of modules is on a floor" do
    assert Enum.sort(Enum.uniq(Map.values(folders()))) == Enum.sort(Map.keys(@floors))
  end

  test "no lab names another, and what is shared names no lab" do
    folders = folders()

    upward =
      for {module, from} <- folders,
          named <- named(module),
          to = folders[named],
          to not in [nil, from],
          to not in @floors[from],
          {from, to} not in @exceptions,
          do: "#{from} -> #{to}: #{inspect(module)} names #{inspect(named)}"

    assert upward == []
  end

  test "no module of the runtime names one of the labs" do
    labs = folders()

    upward =
      for module <- modules(:tame),
          named <- named(module),
          is_map_key(labs, named),
          do: "#{inspect(module)} names #{inspect(named)}"

    assert upward == []
  end

  test "what is sent to a watched node needs nothing but itself, kernel and stdlib" do
    sent = :tame_watch.modules(%{slices: :any})
    otp = modules(:kernel) ++ modules(:stdlib) ++ :erlang.pre_loaded()
    # kernel has it from OTP 27 on; it is called where it is.
    there = [:trace | sent ++ otp]

    missing =
      for module <- sent,
          {:ok, {_, imports: imports}} = :beam_lib.chunks(:code.which(module), [:imports]),
          {used, _, _} <- imports,
          used not in there,
          do: "#{module} calls #{used}"

    assert missing == []
  end

  # The folder of each module, by the source that it was compiled from.
  defp folders do
    {:ok, root} = :tame_labs_native.source_dir()

    for module <- modules(:tame_labs), into: %{} do
      source = to_string(module.module_info(:compile)[:source])
      {module, source |> Path.relative_to(root) |> Path.split() |> hd()}
    end
  end

  defp modules(application) do
    _ = Application.load(application)
    {:ok, modules} = :application.get_key(application, :modules)
    modules
  end

  defp named(module) do
    {:ok, {_, atoms: atoms}} = :beam_lib.chunks(:code.which(module), [:atoms])
    for {_, atom} <- atoms, atom != module, do: atom
  end
end
