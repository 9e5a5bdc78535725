defmodule Bench do
  # What the scripts of this folder have in common.

  # Ends the script where it is asked for a part that it has not.
  def known!(parts, known) do
    for part <- parts, part not in known do
      IO.puts(:stderr, "#{part}: expected some of #{Enum.join(known, ", ")}")
      System.halt(2)
    end
  end

  # What is written for the bench alone: built, and put on the code path.
  def natives do
    :ok = :tame_labs_native.build()
    folder = Path.join(__DIR__, "natives")
    {_, 0} = System.cmd("make", ["-s", "-C", folder], into: IO.stream())
    built = "build/erts-#{:erlang.system_info(:version)}"
    true = :code.add_path(folder |> Path.join(built) |> String.to_charlist())
  end

  # A VM of its own with all that this one has on its code path and these modules, for as long as fun(peer) runs.
  def in_peer(modules, fun) do
    args = Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
    {:ok, peer, _} = :peer.start_link(%{connection: :standard_io, args: args})

    for {module, beam} <- modules,
        do: {:module, _} = :peer.call(peer, :code, :load_binary, [module, ~c"bench", beam])

    value = fun.(peer)
    :peer.stop(peer)
    value
  end

  def table(columns, rows), do: IO.write(Tame.TextTable.format(columns, rows))
  def decimals(value, count), do: :erlang.float_to_binary(value / 1, decimals: count)

  # The element at that part of a sorted list, from 0 to 1.
  def at(sorted, part), do: Enum.at(sorted, min(length(sorted) - 1, floor(length(sorted) * part)))
  def median(values), do: values |> Enum.sort() |> at(0.5)
end
