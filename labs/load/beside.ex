defmodule Tame.Load.Beside do
  @moduledoc """
  An HTTP server in a NIF, beside cowboy: what a request for hello costs each, in a closed loop. Servers take turns, by either
  protocol; each runs in a VM of its own.
  """

  alias Tame.Load.{Closed, Cowboy, H2load, TameHTTP}
  alias Tame.{OtherLoad, SystemInfo, Turns}

  @typedoc "Lists, maps, texts and numbers, as JSON has them."
  @type result :: map()

  @servers [
    {"cowboy_stream", :tame_load_cowboy_stream},
    {"tame_http", :tame_load_http},
    {"cowboy", :tame_load_cowboy},
    {"tame_http_process", :tame_load_http_process},
    {"tame_http_static", :tame_load_http_static}
  ]

  # What does the same work on both sides, so that the one may be divided by the other.
  @pairs [
    {"cowboy_stream", "tame_http"},
    {"cowboy", "tame_http_process"}
  ]

  # Of all cells together half a minute.
  @for_s 1

  @doc "The servers that are compared, cowboy's first: no process for a request on either side, and one on both."
  @spec pairs() :: [{String.t(), String.t()}]
  def pairs, do: @pairs

  @doc """
  Checks what it needs. Returns the plan for `run/1`. Options: `:rounds` (default: 1), `:for_s`, how long each server is asked
  (default: #{@for_s}), `:seed`, `:command`, `:progress`.
  """
  @spec prepare(keyword()) :: {:ok, map()} | {:error, String.t()}
  def prepare(options \\ []) do
    with {:ok, h2load} <- H2load.version(),
         {:ok, _} <- Cowboy.find(),
         {:ok, _} <- TameHTTP.find(),
         :ok <- :tame_labs_native.build() do
      defaults = [
        rounds: 1,
        for_s: @for_s,
        seed: Turns.seed(),
        command: "Tame.Load.Beside",
        progress: fn _ -> :ok end
      ]

      plan = defaults |> Keyword.merge(options) |> Map.new()
      {:ok, Map.merge(plan, %{port: 0, flags: [], h2load: h2load})}
    end
  end

  @doc "Measures. A server that cannot be driven is a row that says why."
  @spec run(map()) :: result()
  def run(plan) do
    system = SystemInfo.collect(plan.command)
    load = OtherLoad.start()
    servers = for protocol <- [:h1, :h2], {name, module} <- @servers, do: {name, module, protocol}
    rows = Closed.rows(servers, plan)
    system = SystemInfo.ended(system, load)

    %{
      tool: "tame.http",
      format: 1,
      system: system,
      warnings: SystemInfo.warnings(system),
      client: plan.h2load,
      rounds: plan.rounds,
      for_s: plan.for_s,
      seed: plan.seed,
      rows: rows
    }
  end

  @doc "Whether every server was measured and answered all that it was asked."
  @spec ok?(result()) :: boolean()
  def ok?(result), do: Enum.all?(result.rows, &(&1.status == "ok" and &1.failed == 0))

  @doc """
  How many times as much CPU a request takes of cowboy as of its counterpart, by protocol; those that were measured.

      iex> row = fn server, us -> %{server: server, protocol: "h2", server_us_per_request: us} end
      iex> Tame.Load.Beside.ratios([row.("cowboy", 20.0), row.("tame_http_process", 5.0), row.("cowboy_stream", nil)])
      [%{cowboy: "cowboy", other: "tame_http_process", protocol: "h2", ratio: 4.0}]
  """
  @spec ratios([map()]) :: [map()]
  def ratios(rows) do
    for {cowboy, other} <- @pairs,
        protocol <- ["h1", "h2"],
        cost = us(rows, cowboy, protocol),
        us = us(rows, other, protocol),
        do: %{cowboy: cowboy, other: other, protocol: protocol, ratio: cost / us}
  end

  # nil too of one that used no time: it was not seen.
  defp us(rows, server, protocol) do
    Enum.find_value(rows, fn
      %{server: ^server, protocol: ^protocol, server_us_per_request: us} when us > 0 -> us
      _ -> nil
    end)
  end
end
