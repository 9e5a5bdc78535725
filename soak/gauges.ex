defmodule Tame.Soak.Gauges do
  @moduledoc "What a VM could lose little by little, measured; and the bounds within which it must stay."

  # {gauge, factor, more}: at most so often the earlier figure, and so much more.
  @bounds [
    {:descriptors, 1.0, 40},
    {:os_processes, 1.0, 12},
    {:atoms, 1.0, 3000},
    {:memory_mb, 1.25, 64},
    {:rss_mb, 1.3, 150},
    {:processes, 1.0, 60},
    {:ports, 1.0, 15},
    {:threads, 1.0, 24},
    {:monitors, 1.0, 200},
    {:tables, 1.0, 10},
    {:resources, 1.5, 2000},
    {:modules, 1.0, 60}
  ]

  def all do
    info = info()
    rings = for {_, %{hosts: hosts}} <- info, %{ring: ring} <- hosts, do: ring

    %{
      descriptors: count("/proc/self/fd"),
      os_processes: length(Path.wildcard("/proc/[0-9]*")),
      atoms: :erlang.system_info(:atom_count),
      memory_mb: div(:erlang.memory(:total), 1_048_576),
      rss_mb: rss_mb(),
      processes: length(Process.list()),
      ports: length(Port.list()),
      threads: count("/proc/self/task"),
      monitors: monitors(),
      tables: length(:ets.all()),
      modules: length(:code.all_loaded()),
      slots: sum(rings, :slots_in_use),
      resources: sum(rings, :resources),
      hosts: length(rings)
    }
  end

  defp info do
    task = Task.async(fn -> if(catch_all(&:tame.info/0), do: :tame.info(), else: %{}) end)

    case Task.yield(task, 5000) || Task.shutdown(task, :brutal_kill) do
      {:ok, info} -> info
      _ -> %{}
    end
  catch
    _, _ -> %{}
  end

  defp catch_all(fun) do
    fun.()
    true
  catch
    _, _ -> false
  end

  defp count(folder), do: folder |> File.ls!() |> length()

  defp rss_mb do
    [_, pages | _] = File.read!("/proc/self/statm") |> String.split()
    div(String.to_integer(pages) * 4096, 1_048_576)
  end

  defp sum(rings, key), do: Enum.sum(for(ring <- rings, is_map_key(ring, key), do: ring[key]))

  # Of our own processes: who calls has some for the time of a call.
  defp monitors do
    Enum.sum(
      for pid <- ours(),
          {:monitors, monitors} <- [Process.info(pid, :monitors)],
          do: length(monitors)
    )
  end

  @doc "Every process below tame_sup, supervised or linked."
  def ours do
    sup = Process.whereis(:tame_sup)
    from_tree = tree(sup)

    linked =
      for pid <- Process.list(),
          {:dictionary, dictionary} <- [Process.info(pid, :dictionary)],
          ancestors = Keyword.get(only_pairs(dictionary), :"$ancestors", []),
          :tame_sup in ancestors or sup in ancestors,
          do: pid

    Enum.uniq(from_tree ++ linked)
  end

  defp only_pairs(dictionary), do: for({key, _} = pair <- dictionary, is_atom(key), do: pair)

  defp tree(nil), do: []

  defp tree(sup) do
    children =
      try do
        :supervisor.which_children(sup)
      catch
        :exit, _ -> []
      end

    Enum.flat_map(children, fn
      {_, pid, :supervisor, _} when is_pid(pid) -> [pid | tree(pid)]
      {_, pid, _, _} when is_pid(pid) -> [pid]
      _ -> []
    end)
  end

  @doc "{gauge, earlier, later, bound} of those that have grown too far."
  def beyond(earlier, later) do
    for {gauge, factor, more} <- @bounds,
        bound = ceil(earlier[gauge] * factor + more),
        later[gauge] > bound,
        do: {gauge, earlier[gauge], later[gauge], bound}
  end

  def bounds, do: @bounds

  @doc "The same when all is undone: what is there has been there before."
  def left(first, last) do
    for {gauge, more} <- [descriptors: 8, os_processes: 0, ports: 0, tables: 4, slots: 0],
        bound = first[gauge] + more,
        last[gauge] > bound,
        do: {gauge, first[gauge], last[gauge], bound}
  end
end
