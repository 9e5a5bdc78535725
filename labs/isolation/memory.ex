defmodule Tame.Isolation.Memory do
  @moduledoc "Memory of the VM and of a host over many calls, by `:tame_many_calls` in a VM of its own."

  alias Tame.Isolation.There

  @typedoc """
  One row for each number of calls: what a call took since the row before, what the VM says that it uses, what the system says that the
  VM and the host hold, and what else might grow.
  """
  @type row :: %{
          calls: non_neg_integer(),
          us_per_call: nil | float(),
          vm_bytes: non_neg_integer(),
          vm_rss_bytes: non_neg_integer(),
          host_bytes: non_neg_integer(),
          atoms: non_neg_integer(),
          processes: non_neg_integer()
        }

  @type result :: %{
          status: String.t(),
          reason: nil | String.t(),
          sizes: [pos_integer()],
          rows: [row()]
        }

  # By turns; 1 MiB is left out, because so few calls of it would be made in the same time.
  @sizes [16, 256, 4096, 65_536]

  @looks 10

  # Much more than the slowest way takes.
  @us_per_call 1000

  @doc "Looks ten times while it makes that many calls, and once before."
  @spec measure(pos_integer()) :: result()
  def measure(calls) do
    each = max(1, div(calls, @looks))
    within_ms = 60_000 + div(each * @us_per_call, 1000)

    There.run(:tame_echo_isolated, within_ms, fn call ->
      first = look(call, 0, nil)

      rest =
        for look <- 1..@looks do
          ns = call.(:tame_many_calls, :run, [each, @sizes])
          look(call, look * each, ns / each / 1000)
        end

      [first | rest]
    end)
    |> case do
      {:ok, rows} -> %{status: "ok", reason: nil, sizes: @sizes, rows: rows}
      {:error, why} -> %{status: "failed", reason: why, sizes: @sizes, rows: []}
    end
  end

  defp look(call, calls, us_per_call) do
    memory = call.(:tame_many_calls, :memory, [])

    %{
      calls: calls,
      us_per_call: us_per_call,
      vm_bytes: memory.vm_bytes,
      vm_rss_bytes: There.rss_bytes(call),
      host_bytes: memory.hosts_bytes,
      atoms: memory.atoms,
      processes: memory.processes
    }
  end

  @doc """
  By how much the VM's memory and the host's grew from the middle of the calls to their end: in bytes, and as a share.

      iex> rows = for n <- 0..4, do: %{vm_bytes: 100 + n, host_bytes: 50}
      iex> Tame.Isolation.Memory.grown(rows)
      [{"VM", 2, 2 / 102}, {"host", 0, 0.0}]
  """
  @spec grown([map()]) :: [{String.t(), integer(), float()}]
  def grown([]), do: []

  def grown(rows) do
    middle = Enum.at(rows, div(length(rows), 2))
    last = List.last(rows)

    for {who, key} <- [{"VM", :vm_bytes}, {"host", :host_bytes}] do
      bytes = last[key] - middle[key]
      {who, bytes, bytes / max(middle[key], 1)}
    end
  end
end
