defmodule Tame.SHA3.Test.Memory do
  @moduledoc false
  # The memory of this VM while it hashes, in bytes as the operating system counts them.

  @doc "By how much a file's stream, which goes into a digest by 64 KiB, makes it grow at most; and the digest."
  def file_stream(path, algorithm) do
    # Once, so that what stays of a first time is there.
    digest = hash_file(path, algorithm, fn _ -> :ok end)
    before = rss()
    most = :atomics.new(1, [])

    hash_file(path, algorithm, fn _ ->
      :atomics.put(most, 1, max(:atomics.get(most, 1), rss()))
    end)

    {:atomics.get(most, 1) - before, digest}
  end

  defp hash_file(path, algorithm, look) do
    path
    |> File.stream!([], 65_536)
    |> Stream.with_index()
    |> Stream.map(fn {chunk, index} ->
      rem(index, 64) == 0 && look.(index)
      chunk
    end)
    |> Enum.into(Tame.SHA3.new(algorithm))
    |> Tame.SHA3.final()
  end

  @doc "By how much ten thousand states that are not ended make it grow; the first thousand do not count."
  def states_without_end(algorithm) do
    states(algorithm, 1_000)
    before = rss()
    states(algorithm, 10_000)
    rss() - before
  end

  # The process that made them is gone, or has collected them each thousand.
  defp states(algorithm, count) do
    for index <- 1..count do
      :tame_sha3.update(:tame_sha3.init(algorithm), "some data")
      if rem(index, 1_000) == 0, do: :erlang.garbage_collect()
    end

    :erlang.garbage_collect()
  end

  @doc "By how much calls that were ended before their end make it grow."
  def ended_calls do
    data = :binary.copy("a", 50_000_000)
    ended(data, 20)
    before = rss()
    ended(data, 200)
    rss() - before
  end

  defp ended(data, count) do
    for _ <- 1..count do
      state = :tame_sha3.init({:parallel_hash256, 8192, ""})

      for call <- [
            fn -> :tame_sha3.update(state, data) end,
            fn -> :tame_sha3.kt128(data, 50_000_000) end,
            fn -> :tame_sha3.hash_many(:sha3_256, [data]) end
          ] do
        try do
          :tame.with(%{deadline_ms: 1}, call)
        rescue
          ErlangError -> :ok
        end
      end
    end

    :erlang.garbage_collect()
  end

  defp rss do
    [_, kilobytes] = Regex.run(~r/VmRSS:\s+(\d+) kB/, File.read!("/proc/self/status"))
    String.to_integer(kilobytes) * 1024
  end
end
