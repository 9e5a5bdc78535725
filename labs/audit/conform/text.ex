defmodule Tame.Audit.Conform.Text do
  @moduledoc "Cases as Erlang would write them. Pure."

  alias Tame.Audit.Conform.Compare

  @doc """
  The calls of a case in one line; `V1` is the value of the first.

      iex> Tame.Audit.Conform.Text.steps([{{:m, :new, 0}, []}, {{:m, :put, 2}, [{:step, 1, [2]}, {:term, "a"}]}])
      "V1 = m:new(), m:put(element(2, V1), <<\\"a\\">>)"
  """
  @spec steps(Tame.Audit.Conform.Cases.one()) :: String.t()
  def steps(steps) do
    needed = for {_, args} <- steps, {:step, n, _} <- args, uniq: true, do: n

    steps
    |> Enum.with_index(1)
    |> Enum.map_join(", ", fn {{{module, name, _}, args}, n} ->
      bound = if n in needed, do: "V#{n} = ", else: ""
      "#{bound}#{quoted(module)}:#{quoted(name)}(#{Enum.map_join(args, ", ", &argument/1)})"
    end)
  end

  defp argument({:term, term}), do: Compare.term(term)
  defp argument({:make, name, bytes}), do: "#{name} of #{bytes} bytes"
  defp argument({:class, name}), do: "size class #{Compare.term(name)}"
  defp argument({:random, seed, budget}), do: "term #{seed} of #{budget} bytes"
  defp argument(:self), do: "self()"
  defp argument({:step, n, path}), do: Enum.reduce(path, "V#{n}", &"element(#{&1}, #{&2})")

  defp quoted(atom), do: "~tw" |> :io_lib.format([atom]) |> IO.chardata_to_string()
end
