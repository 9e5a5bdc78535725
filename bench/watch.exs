# What a watch costs the node that is watched, seen from outside: the CPU time that the operating system counts for it.
#
#     mix run ../bench/watch.exs [SECONDS]
#
# A node of its own with two schedulers that has nothing to do, first with default flags, then without busy waiting. It is
# watched and left alone in turns of SECONDS (default 10), three of each, the first second of a turn not counted. Beside it
# what the watch says of itself. Percentages of one core.

defmodule WatchBench do
  alias Tame.Latency.Distribution

  @turns 3

  defp seconds(text) do
    case Integer.parse(text) do
      {seconds, ""} when seconds >= 2 ->
        seconds

      _ ->
        IO.puts(:stderr, "#{text}: expected seconds, 2 or more")
        System.halt(2)
    end
  end

  def run(argv) do
    seconds = seconds(List.first(argv, "10"))
    {:ok, _} = Distribution.join()

    for {name, flags} <- [
          {"default flags", []},
          {"no busy waiting", ~w(+sbwt none +sbwtdcpu none +sbwtdio none)}
        ] do
      {:ok, peer, node} = start(flags)
      os_pid = :peer.call(peer, :os, :getpid, [])
      # What a VM does once.
      Process.sleep(1000)
      turns = for _ <- 1..@turns, do: {alone(os_pid, seconds), watched(node, os_pid, seconds)}
      :peer.stop(peer)
      row(name, turns)
    end

    Distribution.leave()
  end

  defp start(flags) do
    :peer.start_link(%{
      connection: :standard_io,
      name: ~c"bench_#{System.pid()}_#{System.unique_integer([:positive])}",
      host: ~c"127.0.0.1",
      longnames: true,
      args: Enum.map(~w(-start_epmd false -setcookie bench +S 2:2) ++ flags, &to_charlist/1)
    })
  end

  defp alone(os_pid, seconds) do
    Process.sleep(1000)
    percent(os_pid, fn -> Process.sleep(1000 * (seconds - 1)) end)
  end

  # The counting runs beside the watch, within its time.
  defp watched(node, os_pid, seconds) do
    task =
      Task.async(fn ->
        {:ok, result} =
          Tame.Watch.run(%{
            node: node,
            cookie: "bench",
            for_ms: 1000 * (seconds + 1),
            slices: nil,
            each: fn _, _, _ -> :ok end
          })

        Tame.Watch.Format.sum(result).cost_percent
      end)

    Process.sleep(1500)
    outside = percent(os_pid, fn -> Process.sleep(1000 * (seconds - 1)) end)
    {outside, Task.await(task, :infinity)}
  end

  defp percent(os_pid, wait) do
    before = {ticks(os_pid), System.monotonic_time(:millisecond)}
    wait.()
    # Ticks of a hundredth of a second.
    10 * 100 * (ticks(os_pid) - elem(before, 0)) /
      (System.monotonic_time(:millisecond) - elem(before, 1))
  end

  # proc(5): utime and stime are the 12th and 13th after the name.
  defp ticks(os_pid) do
    fields = "/proc/#{os_pid}/stat" |> File.read!() |> String.split(") ") |> List.last()
    [user, system] = fields |> String.split() |> Enum.slice(11, 2) |> Enum.map(&String.to_integer/1)
    user + system
  end

  defp row(name, turns) do
    alone = Enum.map(turns, &elem(&1, 0))
    outside = Enum.map(turns, fn {_, {outside, _}} -> outside end)
    inside = Enum.map(turns, fn {_, {_, inside}} -> inside end)

    IO.puts(
      "#{String.pad_trailing(name, 16)} alone #{texts(alone)}  watched #{texts(outside)}  it says #{texts(inside)}"
    )
  end

  defp texts(values), do: Enum.map_join(values, " ", &:erlang.float_to_binary(&1 / 1, decimals: 2))
end

WatchBench.run(System.argv())
