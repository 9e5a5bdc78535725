defmodule Tame.Load.BesideReport do
  @moduledoc "HTTP in a NIF in `mix tame.report`, where there is a cowboy, tame_http and h2load."

  @behaviour Tame.Report.Lab

  alias Tame.Load.{Beside, BesideSection, Cowboy, Format, H2load, TameHTTP, Threads}
  alias Tame.{Number, Result}

  @impl true
  def name, do: "http"

  @impl true
  def here?,
    do: Enum.all?([Cowboy.find(), TameHTTP.find(), H2load.version()], &match?({:ok, _}, &1))

  @impl true
  def prepare(options) do
    case Beside.prepare(options.run) do
      {:ok, plan} -> {:ok, fn -> Beside.run(plan) end}
      {:error, why} -> {:error, "the lab http: #{why}"}
    end
  end

  @impl true
  def text(result) do
    body = [
      "HTTP in a NIF, beside cowboy: what a request for hello costs, each server asked for #{result.for_s} s, seed #{result.seed}\n",
      Format.capacity(result.rows),
      for(
        r <- Beside.ratios(result.rows),
        do: "#{r.cowboy} ÷ #{r.other}, #{r.protocol}: #{Number.short(r.ratio)}\n"
      )
    ]

    Result.text(result.system, body, result.warnings)
  end

  @impl true
  defdelegate ok?(result), to: Beside

  @saved ~w(server protocol status reason per_s us_per_request server_us_per_request client_cores spread)a

  @impl true
  def to_save(result) do
    rows = for row <- result.rows, do: Map.take(row, @saved)
    result |> Map.take([:client, :rounds, :for_s, :seed]) |> Map.put(:rows, rows)
  end

  @time {:maybe, :amount}

  @impl true
  def shape do
    row = %{
      server: :text,
      protocol: :text,
      status: :text,
      reason: {:maybe, :text},
      per_s: @time,
      us_per_request: {:maybe, Map.new(Threads.kinds(), &{&1, :amount})},
      server_us_per_request: @time,
      client_cores: @time,
      spread: {:maybe, {:each, {:maybe, {:row, [:number, :number]}}}}
    }

    %{client: :text, rounds: :count, for_s: :count, seed: :count, rows: [row]}
  end

  @impl true
  def section(saved), do: BesideSection.from_result(saved)

  @impl true
  def figures(saved) do
    for row <- saved.rows,
        us = row.server_us_per_request,
        us > 0,
        do: {"#{row.server} #{row.protocol}", "CPU of a request, in turns with cowboy", us}
  end
end
