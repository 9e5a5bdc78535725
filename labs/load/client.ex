defmodule Tame.Load.Client do
  @moduledoc """
  The open loop: `tame_load`, an OS process that sends requests at a fixed rate (`labs/c_src/programs/load/`).

  Each request has a planned start, and its time is counted from there. So a server that stands still is seen in every
  request that was planned meanwhile, as its users would see it, and not in the one request that was under way.
  """

  @typedoc """
  Rate in requests a second; `:start_ns` of the machine's clock (`:os.perf_counter/1`); `:wait_ms` is how long after the
  last planned start an answer is waited for.
  """
  @type options :: %{
          port: 1..65535,
          protocol: :h1 | :h2,
          path: String.t(),
          rate: pos_integer(),
          count: pos_integer(),
          connections: pos_integer(),
          streams: pos_integer(),
          start_ns: integer(),
          wait_ms: non_neg_integer()
        }

  @typedoc """
  A request: when it was planned, sent and over, in ns from the start of the run, nil where it never was, and what came of
  it. `:at_once` says that a stream was free when it was planned, so that the client alone made it late.
  """
  @type request :: %{
          planned_ns: non_neg_integer(),
          sent_ns: nil | integer(),
          done_ns: nil | integer(),
          status: :answered | :refused | :failed | :unanswered | :unsent,
          at_once: boolean()
        }

  @type result :: %{start_ns: integer(), cpu_ns: non_neg_integer(), requests: [request()]}

  @type running :: %{port: port(), options: options()}

  # Of the client's own words, when it has no result.
  @line_bytes 400

  @doc "Starts a client. It ends with its work, with `stop/1`, and with the process that called this."
  @spec start(options()) :: running()
  def start(options) do
    arguments =
      [
        options.port,
        options.protocol,
        options.path,
        options.rate,
        options.count,
        options.connections,
        options.streams,
        options.start_ns,
        options.wait_ms
      ]
      |> Enum.map(&to_string/1)

    port =
      Port.open({:spawn_executable, :tame_labs_native.path(~c"tame_load")}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: arguments
      ])

    %{port: port, options: options}
  end

  @doc "The OS process of a client, or nil when it has ended."
  @spec os_pid(running()) :: nil | pos_integer()
  def os_pid(%{port: port}) do
    case Port.info(port, :os_pid) do
      {:os_pid, os_pid} -> os_pid
      nil -> nil
    end
  end

  @doc "Ends a client at once."
  @spec stop(running()) :: :ok
  def stop(%{port: port}) do
    if Port.info(port), do: Port.close(port)
    flush(port)
  end

  @doc "Waits for a client's result, until that moment of `System.monotonic_time(:millisecond)`."
  @spec await(running(), integer()) :: {:ok, result()} | {:error, String.t()}
  def await(%{port: port, options: options} = running, deadline_ms, seen \\ []) do
    receive do
      {^port, {:data, data}} ->
        await(running, deadline_ms, [seen, data])

      {^port, {:exit_status, 0}} ->
        seen |> IO.iodata_to_binary() |> read(options.rate)

      {^port, {:exit_status, status}} ->
        {:error, words(seen, status)}
    after
      max(0, deadline_ms - System.monotonic_time(:millisecond)) ->
        stop(running)
        {:error, "the client did not end in time"}
    end
  end

  defp flush(port) do
    receive do
      {^port, _} -> flush(port)
    after
      0 -> :ok
    end
  end

  defp words(seen, status) do
    case seen |> IO.iodata_to_binary() |> String.slice(0, @line_bytes) |> String.split("\n") do
      ["tame_load: " <> why | _] -> why
      _ -> "the client ended with exit status #{status}"
    end
  end

  # ---- what it wrote -----------------------------------------------------------------------------

  @doc "Reads what a client wrote: a line, then each request."
  @spec read(binary(), pos_integer()) :: {:ok, result()} | {:error, String.t()}
  def read(output, rate) do
    with [line, requests] <- :binary.split(output, "\n"),
         ["tame_load", count, start_ns, cpu_ns] <- String.split(line),
         count = String.to_integer(count),
         true <- byte_size(requests) == 24 * count do
      {:ok,
       %{
         start_ns: String.to_integer(start_ns),
         cpu_ns: String.to_integer(cpu_ns),
         requests: requests(requests, rate)
       }}
    else
      _ -> {:error, "the client wrote no whole result"}
    end
  end

  defp requests(binary, rate) do
    parts =
      for <<sent::64-signed-native, done::64-signed-native, status::32-signed-native,
            at_once::32-native <- binary>>,
          do: {sent, done, status, at_once}

    for {{sent, done, status, at_once}, i} <- Enum.with_index(parts) do
      %{
        planned_ns: planned_ns(i, rate),
        sent_ns: known(sent),
        done_ns: known(done),
        status: status(sent, status),
        at_once: at_once == 1
      }
    end
  end

  @doc """
  When request `i` is planned at this rate, as the client computes it.

      iex> Enum.map([0, 1, 4], &Tame.Load.Client.planned_ns(&1, 3))
      [0, 333_333_333, 1_333_333_333]
  """
  @spec planned_ns(non_neg_integer(), pos_integer()) :: non_neg_integer()
  def planned_ns(i, rate),
    do: div(i, rate) * 1_000_000_000 + div(rem(i, rate) * 1_000_000_000, rate)

  defp known(-1), do: nil
  defp known(ns), do: ns

  defp status(-1, _), do: :unsent
  defp status(_, 0), do: :unanswered
  defp status(_, status) when status in 200..299, do: :answered
  defp status(_, 503), do: :refused
  defp status(_, _), do: :failed
end
