defmodule Tame.Load.H2load do
  @moduledoc """
  The closed loop: `h2load` of nghttp2, whose clients ask again as soon as they have an answer. It says how much a server does at
  most, and what CPU a request costs; of latencies it says little, because its clients wait while the server stands still.
  """

  alias Tame.Load.{Cell, Threads}

  # As in most published figures of HTTP servers.
  @connections 100
  @streams %{h1: 1, h2: 10}

  @warm_s 1
  @for_s 3
  # Within the run, so that neither its beginning nor its end is in a figure; less of a run that is short.
  @margin_ms 300
  @grace_ms 10_000

  # Ends h2load with the VM, however that ends; the first line is its OS process.
  @guarded ~S"""
  exec 3<&0
  "$@" </dev/null & p=$!
  echo "pid $p"
  (read -r goodbye <&3; kill -KILL $p 2>/dev/null) & g=$!
  wait $p; s=$?
  kill $g 2>/dev/null
  exit $s
  """

  @doc "Its version, or a line that says where to get it."
  @spec version() :: {:ok, String.t()} | {:error, String.t()}
  def version do
    case System.find_executable("h2load") do
      nil ->
        {:error,
         "there is no h2load on PATH: install Debian's nghttp2-client, or leave the closed loops out with --only placements"}

      path ->
        {text, _} = System.cmd(path, ["--version"], stderr_to_stdout: true)
        {:ok, String.trim(text)}
    end
  end

  @doc "How long a cell takes, about."
  @spec cell_ms(pos_integer()) :: pos_integer()
  def cell_ms(for_s \\ @for_s), do: 1000 * (@warm_s + for_s) + 1500

  @typedoc """
  Of the client: a path (default: `/hello`), connections, requests under way on each, a file that each request sends; how many
  seconds it asks (default: #{@for_s}).
  """
  @type spec :: %{
          required(:server) => module(),
          required(:protocol) => :h1 | :h2,
          required(:port) => 0..65535,
          optional(:path) => String.t(),
          optional(:connections) => pos_integer(),
          optional(:streams) => pos_integer(),
          optional(:data) => Path.t(),
          optional(:for_s) => pos_integer()
        }

  @doc "Drives a server as fast as it answers."
  @spec run(spec(), [String.t()]) :: {:ok, map()} | {:error, String.t()}
  def run(spec, flags) do
    Cell.with_server(Map.put(spec, :work, :nothing), flags, &drive(&1, spec))
  end

  defp drive(%{facts: facts}, %{protocol: protocol} = spec) do
    connections = Map.get(spec, :connections, @connections)
    streams = Map.get(spec, :streams, @streams[protocol])
    for_s = Map.get(spec, :for_s, @for_s)
    margin_ms = min(@margin_ms, 150 * for_s)

    arguments =
      if(protocol == :h1, do: ["--h1"], else: []) ++
        if(spec[:data], do: ["-d", spec.data], else: []) ++
        ["-t1", "-c#{connections}", "-m#{streams}", "-D#{for_s}", "--warm-up-time=#{@warm_s}"] ++
        ["http://127.0.0.1:#{facts.port}#{Map.get(spec, :path, "/hello")}"]

    port =
      Port.open({:spawn_executable, "/bin/sh"}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: ["-c", @guarded, "sh", System.find_executable("h2load") | arguments]
      ])

    started = now_ms()

    with {:ok, client, seen} <- client(port, "", started + @grace_ms) do
      sleep(started + 1000 * @warm_s + margin_ms)
      first = {Threads.read(facts.os_pid), :tame_cpu.process_ns(client)}
      sleep(started + 1000 * (@warm_s + for_s) - margin_ms)
      last = {Threads.read(facts.os_pid), :tame_cpu.process_ns(client)}

      with {:ok, text} <- output(port, seen, started + cell_ms(for_s) + @grace_ms),
           {:ok, seen} <- read(text),
           do: {:ok, Map.merge(seen, costs(seen, first, last))}
    end
  end

  defp costs(seen, {first, client_first}, {last, client_last}) do
    if first && last do
      seconds = (last.at_ns - first.at_ns) / 1.0e9
      kinds = Threads.us_per_request(first, last, max(1, round(seen.per_s * seconds)))

      %{
        us_per_request: kinds,
        server_us_per_request: kinds |> Map.values() |> Enum.sum(),
        client_cores: client_cores(client_first, client_last, seconds)
      }
    else
      %{us_per_request: nil, server_us_per_request: nil, client_cores: nil}
    end
  end

  defp client_cores(first, last, seconds) when is_integer(first) and is_integer(last),
    do: (last - first) / 1.0e9 / seconds

  defp client_cores(_first, _last, _seconds), do: nil

  @doc """
  What h2load printed.

      iex> Tame.Load.H2load.read("finished in 3.00s, 512.33 req/s, 1MB/s\\nrequests: 1537 total, 1540 started, 1537 done, " <>
      ...>   "1530 succeeded, 7 failed, 2 errored, 0 timeout\\n")
      {:ok, %{per_s: 512.33, sent: 1537, answered: 1530, failed: 7}}
  """
  @spec read(String.t()) :: {:ok, map()} | {:error, String.t()}
  def read(text) do
    with [_, rate] <- Regex.run(~r/finished in [^,]+, ([\d.]+) req\/s/, text),
         [_, done, succeeded, failed] <-
           Regex.run(~r/(\d+) done, (\d+) succeeded, (\d+) failed/, text) do
      [done, succeeded, failed] = Enum.map([done, succeeded, failed], &String.to_integer/1)
      {per_s, ""} = Float.parse(rate)
      {:ok, %{per_s: per_s, sent: done, answered: succeeded, failed: failed}}
    else
      _ -> {:error, "h2load printed no result: #{text |> String.trim() |> String.slice(0, 200)}"}
    end
  end

  defp client(port, seen, deadline) do
    case Regex.run(~r/^pid (\d+)\n/, seen) do
      [_, pid] -> {:ok, String.to_integer(pid), seen}
      nil -> port |> more(seen, deadline) |> client_then(port, deadline)
    end
  end

  defp client_then({:ok, seen}, port, deadline), do: client(port, seen, deadline)
  defp client_then({:ended, seen}, _port, _deadline), do: read(seen)
  defp client_then({:error, why}, _port, _deadline), do: {:error, why}

  defp output(port, seen, deadline) do
    case more(port, seen, deadline) do
      {:ok, seen} -> output(port, seen, deadline)
      {:ended, seen} -> {:ok, seen}
      {:error, why} -> {:error, why}
    end
  end

  defp more(port, seen, deadline) do
    receive do
      {^port, {:data, data}} -> {:ok, seen <> data}
      {^port, {:exit_status, _}} -> {:ended, seen}
    after
      max(0, deadline - now_ms()) ->
        Port.close(port)
        {:error, "h2load did not end in time"}
    end
  end

  defp sleep(at_ms), do: Process.sleep(max(0, at_ms - now_ms()))
  defp now_ms, do: System.monotonic_time(:millisecond)
end
