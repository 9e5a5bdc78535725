defmodule Tame.CallGraph do
  @moduledoc false
  # Which functions a module's functions call, from the instructions of its object code.

  @doc "The functions that each function of a module calls; none where the code cannot be read."
  @spec of(binary(), module()) :: %{{atom(), arity()} => [mfa()]}
  def of(code, module) do
    {:beam_file, ^module, _, _, _, functions} = :beam_disasm.file(code)

    Map.new(functions, fn {:function, name, arity, _, instructions} ->
      {{name, arity}, instructions |> targets(module) |> Enum.uniq()}
    end)
  rescue
    _ -> %{}
  end

  defp targets({:extfunc, module, name, arity}, _own), do: [{module, name, arity}]

  defp targets({own, name, arity}, own) when is_atom(name) and is_integer(arity),
    do: [{own, name, arity}]

  # The name of a function stands at its start, which is no call.
  defp targets({:func_info, _, _, _}, _own), do: []
  defp targets(tuple, own) when is_tuple(tuple), do: targets(Tuple.to_list(tuple), own)
  defp targets([head | tail], own), do: targets(head, own) ++ targets(tail, own)
  defp targets(_, _own), do: []
end
