defmodule Tame.Digest.Load do
  @moduledoc "How much is hashed by four processes, and how late a neighbour wakes meanwhile."

  # No dependency of a project that has the labs: Tame.Digest.here?/0 asks for it.
  @compile {:no_warn_undefined, :tame_sha3}

  @typedoc "One way: MB hashed in a second, and the neighbour's delays. The first row is nobody's, with nothing hashed."
  @type row :: %{
          way: String.t(),
          mb_per_s: float(),
          p50_us: number(),
          p99_us: number(),
          max_us: number()
        }

  @bytes 1_000_000
  @processes 4
  @period_ms 10

  # Until all processes are at work, and the VM knows where.
  @begin_ms 300

  @doc "Loads the VM for this long by each way, one after the other. A way is a name and what hashes an input."
  @spec measure(pos_integer(), [{String.t(), (binary() -> term())}]) :: [row()]
  def measure(ms, ways \\ ways()) do
    data = :binary.copy(<<0x5A>>, @bytes)

    for {way, fun} <- [{"nobody", nil} | ways] do
      Map.put(beside(fun && fn -> fun.(data) end, ms), :way, way)
    end
  end

  @doc "The ways when none are given."
  @spec ways() :: [{String.t(), (binary() -> term())}]
  def ways do
    eight = List.duplicate(:binary.copy(<<0x5A>>, div(@bytes, 8)), 8)

    [
      {"crypto", &:crypto.hash(:sha3_256, &1)},
      {"tame_sha3", &:tame_sha3.hash(:sha3_256, &1)},
      {"hash_many", fn _ -> :tame_sha3.hash_many(:sha3_256, eight) end},
      {"kt128", &:tame_sha3.kt128(&1, 32)}
    ]
  end

  defp beside(fun, ms) do
    counter = :counters.new(1, [])
    pids = for _ <- 1..@processes, fun != nil, do: spawn_link(fn -> forever(fun, counter) end)
    Process.sleep(@begin_ms)
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: @period_ms})
    before = :counters.get(counter, 1)
    {us, :ok} = :timer.tc(fn -> Process.sleep(ms) end)
    done = :counters.get(counter, 1) - before
    late = :tame_neighbour.stop(neighbour)

    for pid <- pids do
      Process.unlink(pid)
      Process.exit(pid, :kill)
    end

    %{
      mb_per_s: done * @bytes / us,
      p50_us: :tame_histogram.percentile(late, 50) / 1000,
      p99_us: :tame_histogram.percentile(late, 99) / 1000,
      max_us: :tame_histogram.max(late) / 1000
    }
  end

  defp forever(fun, counter) do
    fun.()
    :counters.add(counter, 1, 1)
    forever(fun, counter)
  end
end
