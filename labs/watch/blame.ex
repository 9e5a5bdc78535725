defmodule Tame.Watch.Blame do
  @moduledoc """
  Which NIF a long slice was spent in, from what the VM tells of it.

  The VM reports where a process left its scheduler, and a process gives its current function when its slice is over.
  That names a NIF that hops, but not a plain NIF: by then its process is in the function that called it. So the code
  of that function, fetched from the node once, shows which NIFs it can have been: those that it calls, through
  functions of its own module or of the NIF's.

  A slice that ends in a dirty NIF ends where that was called: what it was spent in is what the process did before. So
  a NIF that was seen on a dirty thread is never the one. One that is declared normal and goes on as a dirty one under
  the same name is taken for dirty as well.
  """

  alias Tame.{CallGraph, FunctionName}

  @enforce_keys [:nifs, :fetch]
  defstruct [:nifs, :fetch, modules: MapSet.new(), dirty: MapSet.new(), calls: %{}]

  @typedoc """
  `:nifs` are what is meant: one when it is certain, several when it is one of them, none when none is known. `:from` is
  what called it; where none is known, the function in which the process was seen.
  """
  @type verdict :: %{nifs: [String.t()], from: String.t() | nil}

  @typedoc "`:calls` are the calls of each function of a module, as far as fetched; `:dirty` are NIFs that were seen on a dirty thread."
  @type t :: %__MODULE__{
          nifs: MapSet.t(mfa()),
          fetch: (module() -> binary() | nil),
          modules: MapSet.t(module()),
          dirty: MapSet.t(mfa()),
          calls: %{module() => %{{atom(), arity()} => [mfa()]}}
        }

  # More modules, and larger ones, are not looked into.
  @most_modules 100
  @most_bytes 1_000_000
  @most_named 4

  @doc "`fetch` gives the object code of a module of the node."
  @spec new([mfa()], (module() -> binary() | nil)) :: t()
  def new(nifs, fetch) do
    %__MODULE__{
      nifs: MapSet.new(nifs),
      fetch: fetch,
      modules: MapSet.new(nifs, &elem(&1, 0))
    }
  end

  @doc "Replaces the list of NIFs, when modules were loaded."
  @spec refresh(t(), [mfa()]) :: t()
  def refresh(blame, nifs),
    do: %{new(nifs, blame.fetch) | calls: blame.calls, dirty: blame.dirty}

  @doc "Remembers functions that were seen on a dirty thread."
  @spec dirty(t(), [mfa()]) :: t()
  def dirty(blame, functions),
    do: %{blame | dirty: MapSet.union(blame.dirty, MapSet.new(functions))}

  @doc "The verdict on the functions in which a process was seen, the most telling first."
  @spec verdict(t(), [mfa()]) :: {verdict(), t()}
  def verdict(blame, functions) do
    functions = Enum.reject(functions, &(&1 in blame.dirty))
    blame = Enum.reduce(functions, blame, fn {module, _, _}, blame -> fetch(blame, module) end)

    case Enum.find(functions, &native?(blame, &1)) do
      nil -> called(blame, Enum.uniq(functions))
      nif -> {%{nifs: [FunctionName.text(nif)], from: nil}, blame}
    end
  end

  @doc """
  Who called it, in words.

      iex> Enum.map([["m:f/1"], []], &Tame.Watch.Blame.caller(%{nifs: &1, from: "timer:sleep/1"}))
      ["timer:sleep/1", "none, seen in timer:sleep/1"]
  """
  @spec caller(%{:nifs => [String.t()], :from => nil | String.t(), optional(atom()) => term()}) ::
          String.t()
  def caller(%{from: nil}), do: "-"
  def caller(%{nifs: [], from: from}), do: "none, seen in #{from}"
  def caller(%{from: from}), do: from

  # A NIF, or a hop under a name that its module's code does not have.
  defp native?(blame, {module, name, arity} = function) do
    function in blame.nifs or
      (module in blame.modules and
         match?(%{^module => %{}}, blame.calls) and
         map_size(blame.calls[module]) > 0 and
         not is_map_key(blame.calls[module], {name, arity}))
  end

  defp called(blame, []), do: {%{nifs: [], from: nil}, blame}

  defp called(blame, [first | _] = functions) do
    Enum.reduce_while(functions, {%{nifs: [], from: FunctionName.text(first)}, blame}, fn function,
                                                                                          {none,
                                                                                           blame} ->
      case reach(blame, function) do
        {[], blame} ->
          {:cont, {none, blame}}

        {nifs, blame} ->
          texts = nifs |> Enum.map(&FunctionName.text/1) |> Enum.sort()

          {:halt,
           {%{nifs: Enum.take(texts, @most_named), from: FunctionName.text(function)}, blame}}
      end
    end)
  end

  # The NIFs that a function calls: within its module, and one step into modules that have NIFs.
  defp reach(blame, {module, name, arity}) do
    {outside, blame} = outside(blame, module, {name, arity})
    {direct, others} = Enum.split_with(outside, &(&1 in blame.nifs))

    Enum.reduce(others, {direct, blame}, fn {other, name, arity}, {found, blame} ->
      if other != module and other in blame.modules do
        blame = fetch(blame, other)
        {more, blame} = outside(blame, other, {name, arity})
        {found ++ Enum.filter(more, &(&1 in blame.nifs)), blame}
      else
        {found, blame}
      end
    end)
    |> then(fn {found, blame} ->
      {found |> Enum.uniq() |> Enum.reject(&(&1 in blame.dirty)), blame}
    end)
  end

  # What a function calls, directly or through functions of its module; NIFs of its own module count.
  defp outside(blame, module, from) do
    blame = fetch(blame, module)
    calls = blame.calls[module] || %{}
    {walk([from], calls, module, MapSet.new(), blame.nifs) |> Enum.uniq(), blame}
  end

  defp walk([], _calls, _module, _seen, _nifs), do: []

  defp walk([from | rest], calls, module, seen, nifs) do
    if from in seen do
      walk(rest, calls, module, seen, nifs)
    else
      targets = Map.get(calls, from, [])
      {inside, outside} = Enum.split_with(targets, &(elem(&1, 0) == module and &1 not in nifs))
      inside = Enum.map(inside, fn {_, name, arity} -> {name, arity} end)
      outside ++ walk(inside ++ rest, calls, module, MapSet.put(seen, from), nifs)
    end
  end

  defp fetch(%{calls: calls} = blame, module)
       when is_map_key(calls, module) or map_size(calls) >= @most_modules,
       do: blame

  defp fetch(blame, module) do
    calls =
      case blame.fetch.(module) do
        code when is_binary(code) and byte_size(code) <= @most_bytes -> CallGraph.of(code, module)
        _ -> %{}
      end

    %{blame | calls: Map.put(blame.calls, module, calls)}
  end
end
