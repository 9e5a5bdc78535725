defmodule Tame.Audit.Conform.Compare do
  @moduledoc """
  Compares what a case did in the VM, in the VM once more, and isolated. Pure.

  What differs between the two VMs is random, a time, or depends on where memory lies and what is in it: there the third has
  to have the same form, and no more.
  """

  @typedoc """
  Of one call: `:equal`; `:contained`, it ended the VM and isolated raised instead; `:varies`, the VM does not do the same
  twice; `{:differs, kind, in_vm, isolated}`; `:unseen`, because an earlier call of the case ended what was to be seen.
  """
  @type verdict ::
          :equal | :contained | :varies | :unseen | {:differs, kind(), String.t(), String.t()}

  @type kind :: :value | :order | :exception | :messages | :crash | :hangs | :vm

  @kinds [:value, :order, :exception, :messages, :crash, :hangs, :vm]

  @doc "What a call may differ in."
  @spec kinds() :: [kind()]
  def kinds, do: @kinds

  @doc "The verdict on each call of a case of that number of calls, from what `Tame.Audit.Conform.Sides.run/4` gave."
  @spec verdicts([term()], pos_integer()) :: [verdict()]
  def verdicts([vm, again, isolated], count) do
    [vm, again, isolated] |> Enum.map(&seen(&1, count)) |> Enum.zip_with(& &1) |> judge([])
  end

  # One for each call; a VM or a call that ended is told of the last one that can have been it.
  defp seen({:ok, {:ok, outcomes}}, count), do: pad(Enum.map(outcomes, &crashed/1), count, :unseen)
  defp seen({:ok, {:error, :hangs}}, count), do: pad([], count, :hangs)

  defp seen({:error, why}, count) do
    pad([], count, if(why =~ ~r/^did not return/, do: :hangs, else: {:ended, why}))
  end

  defp pad(list, count, rest), do: list ++ List.duplicate(rest, count - length(list))

  # An exception of a host that died takes the place of the end of the VM.
  defp crashed(%{did: {:error, {:tame, {:crashed, info}}, _}}), do: {:crashed, info}
  defp crashed(outcome), do: outcome

  defp judge([], done), do: Enum.reverse(done)

  defp judge([[vm, again, isolated] | rest], done) do
    case one(vm, again, isolated) do
      :equal -> judge(rest, [:equal | done])
      :before when rest == [] -> Enum.reverse(done, [{:differs, :crash, text(vm), text(isolated)}])
      # The rest may be the same all the same.
      :varies -> judge(rest, [:varies | done])
      # Which call of several ended the VM is known by the exception of the isolated one.
      :before -> judge(rest, [:unseen | done])
      last -> Enum.reverse(done, [last | Enum.map(rest, fn _ -> :unseen end)])
    end
  end

  defp one(_, _, {:ended, why}), do: {:differs, :vm, "goes on", "the VM that asks hosts: #{why}"}
  defp one({:ended, _}, {:ended, _}, {:crashed, _}), do: :contained
  defp one({:ended, _}, {:ended, _}, %{did: {:error, {:tame, _}, _}}), do: :contained
  defp one({:ended, why}, {:ended, _}, :hangs), do: {:differs, :crash, why, hangs()}
  defp one({:ended, why}, {:ended, _}, :unseen), do: {:differs, :crash, why, "the call answered"}
  defp one({:ended, _}, {:ended, _}, _outcome), do: :before
  defp one(:hangs, :hangs, :hangs), do: :equal
  defp one(same, same, same), do: :equal
  defp one({:crashed, _}, _, _), do: :varies

  defp one(%{} = vm, %{} = again, %{} = isolated) when vm != again do
    if alike?(vm, again, isolated),
      do: :varies,
      else: {:differs, kind(vm, isolated), "#{text(vm)}, or #{text(again)}", text(isolated)}
  end

  defp one(vm, again, _isolated) when vm != again, do: :varies
  defp one(:hangs, :hangs, outcome), do: {:differs, :hangs, hangs(), text(outcome)}
  defp one(vm, _, {:crashed, _} = crashed), do: {:differs, :crash, text(vm), text(crashed)}
  defp one(vm, _, :hangs), do: {:differs, :hangs, text(vm), hangs()}
  defp one(vm, _, isolated), do: {:differs, kind(vm, isolated), text(vm), text(isolated)}

  @doc """
  Whether the third is as the first two are: equal where they are equal, and of their type where they differ.

      iex> import Tame.Audit.Conform.Compare
      iex> {alike?({:ok, 1}, {:ok, 2}, {:ok, 3}), alike?({:ok, 1}, {:ok, 2}, {:error, 3}), alike?(1, 2, :a)}
      {true, false, false}
  """
  @spec alike?(term(), term(), term()) :: boolean()
  def alike?(same, same, third), do: same === third

  def alike?(a, b, c) when is_tuple(a) and is_tuple(b) and is_tuple(c) do
    if tuple_size(a) == tuple_size(b),
      do:
        tuple_size(a) == tuple_size(c) and
          alike_each?(Tuple.to_list(a), Tuple.to_list(b), Tuple.to_list(c)),
      else: true
  end

  def alike?([_ | _] = a, [_ | _] = b, [_ | _] = c) do
    proper? = not Enum.any?([a, b, c], &List.improper?/1)

    if proper? and length(a) == length(b) and length(a) == length(c),
      do: alike_each?(a, b, c),
      else: true
  end

  def alike?(%{} = a, %{} = b, %{} = c) do
    if Map.keys(a) == Map.keys(b),
      do: Map.keys(a) == Map.keys(c) and Enum.all?(Map.keys(a), &alike?(a[&1], b[&1], c[&1])),
      else: true
  end

  def alike?(a, b, c), do: type(c) in [type(a), type(b)]

  defp alike_each?(a, b, c),
    do: [a, b, c] |> Enum.zip() |> Enum.all?(fn {a, b, c} -> alike?(a, b, c) end)

  defp type(term) when is_atom(term), do: :atom
  defp type(term) when is_integer(term), do: :integer
  defp type(term) when is_float(term), do: :float
  defp type(term) when is_binary(term), do: :binary
  defp type(term) when is_list(term), do: :list
  defp type(term) when is_tuple(term), do: :tuple
  defp type(term) when is_map(term), do: :map
  defp type(_term), do: :other

  defp kind(%{did: did}, %{did: did}), do: :messages

  defp kind(%{did: {:value, in_vm}}, %{did: {:value, isolated}}),
    do: if(sorted(in_vm) === sorted(isolated), do: :order, else: :value)

  defp kind(_, _), do: :exception

  defp sorted({:"$large", size, _, hash}), do: {size, hash}
  defp sorted(term), do: :tame_conform.sorted(term)

  defp hangs, do: "does not return"

  @doc "What a call did, for people."
  @spec text(term()) :: String.t()
  def text(:hangs), do: hangs()
  def text(:unseen), do: "was not reached"
  def text({:ended, why}), do: why
  def text({:crashed, info}), do: "its host died of #{term(Map.get(info, :signal, info))}"

  def text(%{did: did, messages: messages}) do
    case messages do
      [] -> did(did)
      _ -> "#{did(did)} and sends #{term(messages)}"
    end
  end

  defp did({:value, value}), do: term(value)
  defp did({:error, reason, head}), do: "raises #{term(reason)}#{in_head(head)}"
  defp did({class, reason}), do: "#{class}s #{term(reason)}"
  defp did(:ended), do: "ends its process"

  defp in_head({module, name, arity}), do: " in #{module}:#{name}/#{arity}"
  defp in_head(_), do: ""

  @most_chars 160

  @doc "A term as Erlang writes it, cut off where it is long."
  @spec term(term()) :: String.t()
  def term({:"$large", bytes, hash, _}) do
    "a term of #{bytes} bytes, md5 #{hash |> Base.encode16(case: :lower) |> String.slice(0, 8)}"
  end

  def term(term) do
    text = "~0tP" |> :io_lib.format([term, 40]) |> IO.chardata_to_string()

    if String.length(text) > @most_chars,
      do: String.slice(text, 0, @most_chars) <> "...",
      else: text
  end
end
