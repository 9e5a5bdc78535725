defmodule Tame.Audit.Functions do
  @moduledoc """
  Which functions of a module lead to its library: those that are exported and are NIFs, or call one of their module's.
  """

  alias Tame.Audit.Library
  alias Tame.CallGraph

  # Nothing to be called without knowing what it does: it ends the VM or a process, loads, or is called by OTP alone.
  @left_out ~w(module_info load load_nif init on_load start start_link stop halt kill code_change handle_call handle_cast
               handle_info handle_continue terminate nif_stub_error behaviour_info test eunit)a

  @doc "Functions that are never called, whatever library has them."
  @spec left_out() :: [atom()]
  def left_out, do: @left_out

  @doc "The functions with how the NIFs that they reach are declared, by name. `beam` is the module's file."
  @spec of(Library.t(), Path.t()) :: [{mfa(), [Library.kind()]}]
  def of(library, beam) do
    module = String.to_atom(library.module)
    {:ok, {_, [exports: exports]}} = :beam_lib.chunks(String.to_charlist(beam), [:exports])
    kinds = Map.new(library.functions, &{{String.to_atom(&1.name), &1.arity}, &1.kind})
    calls = beam |> File.read!() |> CallGraph.of(module)

    for {name, arity} = function <- Enum.sort(exports),
        name not in @left_out,
        reached = reach([function], module, calls, kinds, []),
        reached != [],
        do: {{module, name, arity}, Enum.uniq(Enum.map(reached, &kinds[&1]))}
  end

  defp reach([], _module, _calls, kinds, seen), do: Enum.filter(seen, &is_map_key(kinds, &1))

  defp reach([function | rest], module, calls, kinds, seen) do
    if function in seen do
      reach(rest, module, calls, kinds, seen)
    else
      # A NIF's stub calls what raises.
      inside =
        if is_map_key(kinds, function),
          do: [],
          else: for({^module, name, arity} <- Map.get(calls, function, []), do: {name, arity})

      reach(inside ++ rest, module, calls, kinds, [function | seen])
    end
  end
end
