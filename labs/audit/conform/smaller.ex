defmodule Tame.Audit.Conform.Smaller do
  @moduledoc """
  Makes a case smaller for as long as it still shows the same.
  """

  alias Tame.Audit.Conform.Cases

  @tries 60

  @doc """
  The smallest case that was found of which `same?` says so; it is asked a bounded number of times, each time with the
  state that it returned before.
  """
  @spec case(Cases.one(), state, (Cases.one(), state -> {boolean(), state})) :: {Cases.one(), state}
        when state: term()
  def case(steps, state, same?), do: down(candidates(steps), steps, state, same?, @tries)

  defp down([one | rest], steps, state, same?, left) when left > 0 do
    case same?.(one, state) do
      {true, state} -> down(candidates(one), one, state, same?, left - 1)
      {false, state} -> down(rest, steps, state, same?, left - 1)
    end
  end

  defp down(_, steps, state, _same?, _left), do: {steps, state}

  @doc """
  The cases that are a step smaller, the smallest first.

      iex> f = {:m, :f, 1}
      iex> Tame.Audit.Conform.Smaller.candidates([{f, [{:term, "abcd"}]}])
      [[{f, [{:term, ""}]}], [{f, [{:term, "ab"}]}], [{f, [{:term, "cd"}]}], [{f, [{:term, "abc"}]}]]
  """
  @spec candidates(Cases.one()) :: [Cases.one()]
  def candidates(steps) do
    fewer = for at <- 0..(length(steps) - 2)//1, dropped = drop(steps, at), dropped, do: dropped

    less =
      for {{_, args}, at} <- Enum.with_index(steps),
          {argument, place} <- Enum.with_index(args),
          smaller <- argument(argument) do
        List.update_at(steps, at, fn {function, args} ->
          {function, List.replace_at(args, place, smaller)}
        end)
      end

    fewer ++ less
  end

  # A call whose value a later one needs stays.
  defp drop(steps, at) do
    {head, [_ | tail]} = Enum.split(steps, at)
    n = at + 1
    needed? = Enum.any?(tail, fn {_, args} -> Enum.any?(args, &match?({:step, ^n, _}, &1)) end)
    if needed?, do: nil, else: head ++ Enum.map(tail, &renumber(&1, n))
  end

  defp renumber({function, args}, n) do
    {function,
     Enum.map(args, fn
       {:step, m, path} when m > n -> {:step, m - 1, path}
       other -> other
     end)}
  end

  defp argument({:term, term}), do: for(smaller <- term(term), do: {:term, smaller})

  defp argument({:make, name, bytes}) when bytes > 64,
    do: [{:make, name, 1}, {:make, name, div(bytes, 2)}]

  # Small enough to be shown as it is, and to go on with.
  defp argument({:make, _, _} = made), do: [{:term, :tame_conform.made(made)}]

  defp argument({:random, seed, budget}) when budget > 24, do: [{:random, seed, div(budget, 2)}]
  defp argument(_other), do: []

  defp term(binary) when is_binary(binary) and binary != "" do
    size = byte_size(binary)
    half = div(size, 2)

    [
      "",
      binary_part(binary, 0, half),
      binary_part(binary, half, size - half),
      binary_part(binary, 0, size - 1)
    ]
    |> Enum.uniq()
    |> List.delete(binary)
  end

  defp term([_ | _] = list) do
    if List.improper?(list) do
      [[]]
    else
      half = div(length(list), 2)

      inside =
        for {one, at} <- Enum.with_index(Enum.take(list, 4)),
            smaller <- Enum.take(term(one), 2),
            do: List.replace_at(list, at, smaller)

      Enum.uniq([[], Enum.take(list, half), Enum.drop(list, half), tl(list)] ++ inside)
      |> List.delete(list)
    end
  end

  defp term(tuple) when is_tuple(tuple) and tuple_size(tuple) > 0 do
    for at <- 0..min(tuple_size(tuple) - 1, 3),
        smaller <- Enum.take(term(elem(tuple, at)), 2),
        do: put_elem(tuple, at, smaller)
  end

  defp term(map) when is_map(map) and map_size(map) > 0 do
    [%{} | for({key, _} <- Enum.take(map, 3), do: Map.delete(map, key))]
  end

  defp term(integer) when is_integer(integer) and integer not in [0, 1, -1],
    do: [0, div(integer, 2)]

  defp term(_), do: []
end
