# For how long at a time the caller of a ring holds its scheduler while it takes a reply, by kind of reply.
#
#   MIX_ENV=test mix run ../bench/reply_slices.exs      from test/, whose terms it uses; half a minute
#
# A slice is the time from `in` to `out` of the calling process in the emulator's own trace, on a normal scheduler, its
# garbage collections included. A reply is received 30 times, each by a new process. The table has the longest slice of
# each time: the least, the median and the largest of the 30. What the operating system takes of a slice hits some of the
# 30; what the ring does hits all. The first two rows are for comparison and have no ring: a process that counts, and
# binary_to_term/2, which ends its slices by its own count of bytes.

defmodule Bench.ReplySlices do
  alias Tame.Test.{RingHost, RingTerms}

  @times 30
  # As c_src/ring/nif_reading.c decodes it in one go.
  @at_once 160 * 1024

  def run do
    :ok = RingHost.build()
    host = RingHost.start_ring(["workers=1"], %{spin_us: 0})
    IO.puts(row(["reply", "bytes", "slices", "least", "median", "largest us"]))

    list = :erlang.term_to_binary(Enum.to_list(1..1_000_000))
    plain = [{"(counts)", :count}, {"(binary_to_term, 10^6)", {:decode, list}}]

    for {name, work} <- plain ++ replies() do
      runs = for _ <- 1..@times, do: slices(host, work)
      longest = Enum.sort(for run <- runs, do: Enum.max(run))
      numbers = [hd(longest), Enum.at(longest, div(@times, 2)), List.last(longest)]
      count = runs |> Enum.map(&length/1) |> Enum.sort() |> Enum.at(div(@times, 2))
      size = if is_binary(work), do: byte_size(work), else: ""

      IO.puts(
        row([name, size, count | for(ns <- numbers, do: Float.round(ns / 1000, 0) |> trunc())])
      )
    end
  end

  defp replies do
    binary = fn size -> :binary.copy("x", size) end

    terms = [
      {"binary, 64 KiB", binary.(65_536)},
      {"binary, 100 MB", binary.(100_000_000)},
      {"30 binaries of 1 MB", List.duplicate(binary.(1_000_000), 30)},
      {"list, at once", List.duplicate("ab", div(@at_once, 7) - 10)},
      {"strings, at once", List.duplicate(~c"abcdefgh", div(@at_once, 11) - 10)},
      {"maps of 3, at once", List.duplicate(%{a: 1, b: 2, c: 3}, div(@at_once, 24) - 10)},
      {"map of 129", RingTerms.map(129, :small)},
      {"map of 1,500", RingTerms.map(1500, :binary)},
      {"map of 3,000", RingTerms.map(3000, :binary)},
      {"map of 100,000", RingTerms.map(100_000, :binary)},
      {"100,000 maps of 3", List.duplicate(%{a: 1, b: 2, c: 3}, 100_000)},
      {"list of 10^6", Enum.to_list(1..1_000_000)},
      {"tuple of 10^6", :erlang.make_tuple(1_000_000, [])}
    ]

    nils = fn bytes -> <<131, 108, bytes - 7::32, :binary.copy(<<106>>, bytes - 6)::binary>> end

    for({name, term} <- terms, do: {name, :erlang.term_to_binary(term)}) ++
      [{"empty lists, at once", nils.(@at_once)}, {"empty lists, 1 MB", nils.(1_000_000)}]
  end

  # The caller's slices, in ns.
  defp slices(host, work) do
    {pid, monitor} =
      spawn_monitor(fn ->
        receive do
          :go -> work(host, work)
        end
      end)

    :erlang.trace(pid, true, [:running, :exiting, :scheduler_id, :monotonic_timestamp])
    send(pid, :go)

    receive do
      {:DOWN, ^monitor, :process, ^pid, :normal} -> :ok
    end

    reference = :erlang.trace_delivered(:all)

    receive do
      {:trace_delivered, :all, ^reference} -> :ok
    end

    collect(pid, nil, [])
  end

  defp work(_host, :count), do: count(3_000_000)
  defp work(_host, {:decode, bytes}), do: :erlang.binary_to_term(bytes, [:safe])

  defp work(host, bytes) do
    {:value, _} = RingHost.call(host, :raw, [bytes])
  end

  defp count(0), do: :ok
  defp count(n), do: count(n - 1)

  # Those on normal schedulers. A process that exits goes `out` as out_exited.
  defp collect(pid, since, slices) do
    receive do
      {:trace_ts, ^pid, :in, _, scheduler, at} -> collect(pid, normal?(scheduler) && at, slices)
      {:trace_ts, ^pid, _, _, _, _} when since in [nil, false] -> collect(pid, nil, slices)
      {:trace_ts, ^pid, _, _, _, at} -> collect(pid, nil, [ns(at - since) | slices])
    after
      0 -> slices
    end
  end

  defp normal?(scheduler), do: scheduler in 1..:erlang.system_info(:schedulers)

  defp ns(native), do: :erlang.convert_time_unit(native, :native, :nanosecond)

  defp row(columns) do
    [name | rest] = Enum.map(columns, &to_string/1)
    String.pad_trailing(name, 24) <> Enum.map_join(rest, &String.pad_leading(&1, 12))
  end
end

Bench.ReplySlices.run()
