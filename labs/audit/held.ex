defmodule Tame.Audit.Held do
  @moduledoc """
  Whether one call of many holds its scheduler, while a single call is short (`tame_audit:held/2`).

  Of what the operating system took in the meantime nobody knows which stretches it was in. But the k longest
  together had at least their sum without it, and so the longest at least a k-th of that. The best of these is a lower
  bound, which a busy machine makes less. What a hypervisor takes from a virtual machine is not known so finely and is
  in the stretches: so what was seen once has to be seen again.
  """

  @typedoc "How long such a call held it at least, in how many of the calls."
  @type t :: %{us: number(), seen: pos_integer(), calls: pos_integer()}

  @typedoc "A row of calls: its longest stretches, and what the operating system took in all."
  @type reading :: %{
          calls: pos_integer(),
          stretches_ns: [non_neg_integer()],
          stolen_ns: non_neg_integer()
        }

  # What is seen once is looked for again, so often.
  @looks 3

  # What is this many limits long is no hiccup of the machine, if it is seen once.
  @plainly 10

  @doc "Looks with `row`, which is given the least length of a stretch in ns, for calls over `limit_us`."
  @spec look(number(), (pos_integer() -> {:ok, reading()} | {:error, term()})) ::
          {:ok, nil | t()} | {:error, term()}
  def look(limit_us, row), do: look(limit_us, row, [], @looks)

  defp look(limit_us, row, readings, looks) do
    with {:ok, reading} <- row.(trunc(1000 * limit_us)) do
      readings = [reading | readings]

      case judge(readings, limit_us) do
        :once when looks > 1 -> look(limit_us, row, readings, looks - 1)
        :once -> {:ok, nil}
        answer -> {:ok, answer}
      end
    end
  end

  @doc """
  What rows of calls come to: nil, or `:once` where it has to be seen again.

      iex> row = fn stretches, stolen -> %{calls: 500, stretches_ns: stretches, stolen_ns: stolen} end
      iex> Tame.Audit.Held.judge([row.([8_000_000, 8_000_000, 8_000_000], 3_000_000)], 1500)
      %{us: 7000.0, seen: 3, calls: 500}

      iex> row = fn stretches, stolen -> %{calls: 500, stretches_ns: stretches, stolen_ns: stolen} end
      iex> Tame.Audit.Held.judge([row.([4_000_000, 4_000_000], 9_000_000)], 1500)
      nil
  """
  @spec judge([reading()], number()) :: nil | :once | t()
  def judge(readings, limit_us) do
    row = join(readings)
    least = [row | readings] |> Enum.map(&bound/1) |> Enum.max()

    cond do
      least <= limit_us -> nil
      least < @plainly * limit_us and not again?(row, readings, limit_us) -> :once
      true -> %{us: least, seen: Enum.count(over(row, limit_us)), calls: row.calls}
    end
  end

  # In two rows, or twice in one: without its longest, as if nothing had been taken from that.
  defp again?(row, readings, limit_us) do
    Enum.count(readings, &(bound(&1) > limit_us)) > 1 or
      bound(Map.update!(row, :stretches_ns, &Enum.drop(&1, 1))) > limit_us
  end

  defp over(row, limit_us), do: Enum.filter(row.stretches_ns, &(&1 > 1000 * limit_us))

  defp join(readings) do
    %{
      calls: readings |> Enum.map(& &1.calls) |> Enum.sum(),
      stretches_ns: readings |> Enum.flat_map(& &1.stretches_ns) |> Enum.sort(:desc),
      stolen_ns: readings |> Enum.map(& &1.stolen_ns) |> Enum.sum()
    }
  end

  defp bound(%{stretches_ns: longest, stolen_ns: stolen_ns}) do
    longest
    |> Enum.scan(&(&1 + &2))
    |> Enum.with_index(1)
    |> Enum.map(fn {sum, count} -> (sum - stolen_ns) / count / 1000 end)
    |> Enum.max(fn -> 0 end)
  end
end
