defmodule Tame.Audit.Conform.Cases do
  @moduledoc """
  Makes the calls by which a library is compared, and grows them from what it took: a case is a list of calls, the last
  of which is the function that is tried; the arguments of one may be what an earlier one returned.

  It begins with samples, with the audit's inputs, with terms of each size that the emulator tells apart
  (`Tame.SizeClasses`), and with the atoms and texts of the module and its library. What a function answers without an
  error is kept, and changed; a value with a reference in it is given to the other functions. All is drawn from the
  calling process's `:rand`, so a seed gives the same again, as far as the library does.
  """

  @enforce_keys [:functions, :words]
  defstruct [:functions, :words, good: %{}, makers: %{}]

  @typedoc "As tame_conform has it."
  @type one :: [{mfa(), [term()]}]

  @type t :: %__MODULE__{
          functions: [mfa()],
          words: tuple(),
          good: %{mfa() => [one()]},
          makers: %{mfa() => [{one(), path :: [pos_integer()]}]}
        }

  @generators ~w(json utf8 binary list map iolist integer term)a
  @integers [0, 1, 2, 3, 4, 7, 8, 10, 16, 31, 32, 64, 100, 127, 128, 255, 256, 1000, 4096, 65_535] ++
              [-1, -128, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, -0x8000_0000, 0x7FFF_FFFF_FFFF_FFFF] ++
              [0xFFFF_FFFF_FFFF_FFFF, 0x1_0000_0000_0000_0000]
  @texts [
    "",
    "a",
    "key",
    "text",
    "a/b/c",
    "1.5",
    "é",
    "[1,2]",
    "{}",
    "<a/>",
    "a: b",
    "utf-8",
    "=",
    "\0"
  ]
  @plain [[], [], [], true, false, {}, %{}, :undefined, nil, 1.5, -0.0, [1 | 2]]
  @few 30
  @most_steps 6

  @doc "For these functions; `samples` are arguments of some, `words` are atoms and texts."
  @spec new([mfa()], [{mfa(), [term()]}], [atom() | String.t()]) :: t()
  def new(functions, samples, words) do
    good =
      samples
      |> Enum.map(fn {function, args} -> {function, [{function, Enum.map(args, &{:term, &1})}]} end)
      |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))

    %__MODULE__{functions: functions, words: List.to_tuple(words), good: good}
  end

  @doc "A case of a function."
  @spec draw(t(), mfa()) :: one()
  def draw(cases, {_, _, arity} = function) do
    good = Map.get(cases.good, function, [])

    cond do
      good != [] and chance(70) -> good |> pick() |> changed(cases)
      cases.makers != %{} and arity > 0 and chance(60) -> given(cases, function)
      true -> [{function, fresh(cases, function)}]
    end
  end

  @doc "Remembers what came of a case: for each step whether it was refused, and where its value has references."
  @spec learn(t(), one(), [%{refused: boolean(), references: [[pos_integer()]]}]) :: t()
  def learn(cases, steps, outcomes) do
    cases =
      if length(outcomes) == length(steps) and not List.last(outcomes).refused,
        do: %{cases | good: keep(cases.good, elem(List.last(steps), 0), steps)},
        else: cases

    outcomes
    |> Enum.with_index(1)
    |> Enum.reduce(cases, fn {%{references: paths}, n}, cases ->
      prefix = Enum.take(steps, n)
      {function, _} = List.last(prefix)

      Enum.reduce(paths, cases, fn path, cases ->
        %{cases | makers: keep(cases.makers, function, {prefix, path})}
      end)
    end)
  end

  @doc "Cases that make something to hold on to."
  @spec makers(t()) :: [one()]
  def makers(cases) do
    for {_, made} <- cases.makers, {steps, _} <- made, uniq: true, do: steps
  end

  # A few of each, the newer in the place of any.
  defp keep(map, key, one) do
    Map.update(map, key, [one], fn old ->
      cond do
        one in old -> old
        length(old) < @few -> [one | old]
        true -> List.replace_at(old, :rand.uniform(@few) - 1, one)
      end
    end)
  end

  # ---- a case from others ----------------------------------------------------------------------------

  defp given(cases, {_, _, arity} = function) do
    {_, makers} = cases.makers |> Enum.sort() |> pick()
    {prefix, path} = pick(makers)

    if length(prefix) < @most_steps do
      args = List.replace_at(fresh(cases, function), place(arity), {:step, length(prefix), path})
      prefix ++ [{function, args}]
    else
      [{function, fresh(cases, function)}]
    end
  end

  # A handle is the first argument nearly always.
  defp place(arity), do: if(chance(75), do: 0, else: :rand.uniform(arity) - 1)

  defp changed(steps, cases) do
    case :rand.uniform(10) do
      1 when length(steps) < @most_steps -> steps ++ [List.last(steps)]
      2 -> steps
      _ -> change_step(steps, cases)
    end
  end

  defp change_step(steps, cases) do
    at = if chance(75), do: length(steps) - 1, else: :rand.uniform(length(steps)) - 1

    List.update_at(steps, at, fn
      {function, []} -> {function, []}
      {function, args} -> {function, change_one(args, cases)}
    end)
  end

  defp change_one(args, cases) do
    List.update_at(args, :rand.uniform(length(args)) - 1, &argument(&1, cases))
  end

  defp argument({:term, term}, cases) do
    case :rand.uniform(10) do
      1 -> one(cases)
      2 -> {:class, pick_class()}
      _ -> {:term, term(term, cases)}
    end
  end

  defp argument({:make, name, bytes}, cases) do
    case :rand.uniform(4) do
      1 -> one(cases)
      2 -> {:term, term(:tame_conform.made({:make, name, min(bytes, 300)}), cases)}
      _ -> {:make, name, bytes()}
    end
  end

  defp argument({:step, _, _} = step, cases), do: if(chance(80), do: step, else: one(cases))
  defp argument(_other, cases), do: one(cases)

  # ---- terms -----------------------------------------------------------------------------------------

  # What another function took in this place serves often, above all one of the same name.
  defp fresh(cases, {_, name, arity}) do
    alike = for {{_, ^name, _}, good} <- cases.good, steps <- good, do: steps

    for place <- 0..(arity - 1)//1 do
      case :rand.uniform(10) do
        n when n <= 4 and alike != [] ->
          borrowed(pick(alike), place, cases)

        5 when cases.good != %{} ->
          cases.good |> Enum.sort() |> pick() |> elem(1) |> pick() |> borrowed(place, cases)

        _ ->
          one(cases)
      end
    end
  end

  defp borrowed(steps, place, cases) do
    {_, args} = List.last(steps)

    case Enum.at(args, place) do
      nil -> one(cases)
      {:step, _, _} -> one(cases)
      argument -> argument
    end
  end

  defp one(cases) do
    case :rand.uniform(17) do
      n when n <= 3 -> {:make, pick(@generators), bytes()}
      n when n <= 5 -> {:term, atom(cases)}
      6 -> {:term, for(_ <- 1..:rand.uniform(3), do: atom(cases))}
      7 -> {:term, [{atom(cases), pick(@integers)}]}
      n when n <= 9 -> {:term, pick(@integers)}
      n when n <= 11 -> {:term, text(cases)}
      12 -> {:term, cases |> text() |> String.to_charlist()}
      13 -> {:term, pick(@plain)}
      14 -> {:class, pick_class()}
      15 -> {:random, :rand.uniform(0xFFFF_FFFF), :rand.uniform(500)}
      16 -> :self
      17 -> {:term, []}
    end
  end

  # Small ones more often than large ones.
  defp bytes, do: round(:math.pow(2, :rand.uniform() * 12))

  defp atom(cases) do
    case word(cases) do
      word when is_atom(word) -> word
      _ -> pick(@plain)
    end
  end

  defp text(cases) do
    case word(cases) do
      word when is_binary(word) -> word
      word -> if chance(50), do: Atom.to_string(word), else: pick(@texts)
    end
  end

  defp word(%{words: {}}), do: :undefined
  defp word(%{words: words}), do: elem(words, :rand.uniform(tuple_size(words)) - 1)

  # A term with one place in it changed.
  defp term(list, cases) when is_list(list) and list != [] do
    if List.improper?(list), do: [], else: list |> changed_list(cases)
  end

  defp term(tuple, cases) when is_tuple(tuple) and tuple_size(tuple) > 0 do
    at = :rand.uniform(tuple_size(tuple)) - 1
    put_elem(tuple, at, term(elem(tuple, at), cases))
  end

  defp term(map, cases) when is_map(map) and map_size(map) > 0 do
    {key, value} = map |> Enum.take(32) |> pick()

    case :rand.uniform(4) do
      1 -> Map.delete(map, key)
      2 -> map |> Map.delete(key) |> Map.put(term(key, cases), value)
      _ -> Map.put(map, key, term(value, cases))
    end
  end

  defp term(binary, cases) when is_binary(binary), do: changed_binary(binary, cases)

  defp term(integer, _cases) when is_integer(integer) do
    case :rand.uniform(4) do
      1 -> -integer
      2 -> integer + pick([-1, 1, 256])
      3 -> Bitwise.bxor(integer, Bitwise.bsl(1, :rand.uniform(40)))
      4 -> pick(@integers)
    end
  end

  defp term(atom, cases) when is_atom(atom), do: if(chance(70), do: atom(cases), else: text(cases))
  defp term(_other, cases), do: atom(cases)

  defp changed_list(list, cases) do
    at = :rand.uniform(length(list)) - 1

    case :rand.uniform(6) do
      1 -> List.delete_at(list, at)
      2 -> List.insert_at(list, at, Enum.at(list, at))
      3 -> List.insert_at(list, at, atom(cases))
      _ -> List.update_at(list, at, &term(&1, cases))
    end
  end

  defp changed_binary(binary, cases) do
    at = :rand.uniform(byte_size(binary) + 1) - 1
    {head, tail} = :erlang.split_binary(binary, at)

    case :rand.uniform(6) do
      1 ->
        head

      2 ->
        tail

      3 ->
        binary <> head

      4 ->
        head <> text(cases) <> tail

      5 ->
        head <> <<:rand.uniform(256) - 1>> <> tail

      6 when tail != "" ->
        head <> <<:rand.uniform(256) - 1>> <> binary_part(tail, 1, byte_size(tail) - 1)

      6 ->
        head <> text(cases)
    end
  end

  # What a host takes as a name of its own node in an earlier life differs from what the VM does.
  defp pick_class do
    names =
      case :persistent_term.get(__MODULE__, nil) do
        nil ->
          names =
            for {name, _} <- Tame.SizeClasses.some(65_536), elem(name, 0) != :earlier, do: name

          :persistent_term.put(__MODULE__, names)
          names

        names ->
          names
      end

    pick(names)
  end

  defp pick(list), do: Enum.at(list, :rand.uniform(length(list)) - 1)
  defp chance(percent), do: :rand.uniform(100) <= percent
end
