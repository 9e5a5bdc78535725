defmodule Tame.Load.Report do
  @moduledoc "The load lab's part in `mix tame.report`: in quick form, where there is a cowboy."

  @behaviour Tame.Report.Lab

  alias Tame.Load
  alias Tame.Load.{Cowboy, Format, H2load, Section, Threads}
  alias Tame.Report.Threads, as: Pictures

  @impl true
  def name, do: "load"

  @impl true
  def here?, do: match?({:ok, _}, Cowboy.find())

  # Where there is no h2load, without the closed loop.
  @impl true
  def prepare(options) do
    parts = ~w(placements limits)
    parts = if match?({:ok, _}, H2load.version()), do: ["capacity" | parts], else: parts

    with {:ok, plan} <- Load.prepare([which: :quick, only: parts] ++ options.run),
         do: {:ok, fn -> measure(plan) end}
  end

  # The other labs' results are not lost by a server that cannot be driven.
  defp measure(plan) do
    case Load.run(plan) do
      {:ok, result} -> result
      {:error, why} -> raise why
    end
  end

  @impl true
  defdelegate text(result), to: Format

  @impl true
  defdelegate ok?(result), to: Load

  @impl true
  def to_save(result), do: result |> Format.fields() |> Keyword.delete(:sentences) |> Map.new()

  @time {:maybe, :amount}

  @impl true
  def shape do
    %{
      server: :text,
      protocol: :text,
      open_client: :text,
      closed_client: {:maybe, :text},
      cores: :count,
      load_percent: :count,
      hello_rate: :count,
      bound_us: :count,
      for_ms: :count,
      seed: :count,
      ceiling: %{answered_per_s: :amount, client_us_per_request: :amount},
      capacity: [
        %{
          server: :text,
          protocol: :text,
          status: :text,
          reason: {:maybe, :text},
          per_s: @time,
          us_per_request: kinds(),
          server_us_per_request: @time,
          client_cores: @time,
          spread: spread()
        }
      ],
      cells: [cell()],
      limits: [
        %{
          placement: :text,
          job_us: :count,
          status: :text,
          reason: {:maybe, :text},
          held_per_s: {:maybe, :count},
          held_p99_us: @time,
          overload: %{
            rate: :count,
            hello_p99_us: @time,
            refused: :count,
            failed: :count,
            recovered_ms: @time
          }
        }
      ]
    }
  end

  defp kinds, do: {:maybe, Map.new(Threads.kinds(), &{&1, :amount})}
  defp spread, do: {:maybe, {:each, {:maybe, {:row, [:number, :number]}}}}

  defp cell do
    %{
      placement: :text,
      job_us: :count,
      job_rate: :count,
      status: :text,
      reason: {:maybe, :text},
      cores: kinds(),
      spread: spread(),
      intervals: [
        %{
          since_ms: :number,
          at_ms: :number,
          hello_per_s: :amount,
          hello_p99_us: @time,
          hello_max_us: @time,
          jobs_per_s: :amount
        }
      ],
      cpu: [Pictures.shape()],
      utilisation: [
        %{since_ms: :number, at_ms: :number, normal: :amount, queued: :count, late: :boolean}
      ]
    }
    |> Map.merge(
      Map.new(
        ~w(job_planned job_sent job_answered job_refused job_failed hello_failed)a,
        &{&1, :count}
      )
    )
    |> Map.merge(
      Map.new(
        ~w(hello_p50_us hello_p99_us hello_p999_us hello_max_us job_p50_us job_p99_us job_answered_per_s client_cores recovered_ms)a,
        &{&1, @time}
      )
    )
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    cells =
      for cell <- saved.cells,
          us = cell.hello_p99_us,
          us > 0,
          do: {Format.name(cell), "hello p99", us}

    capacity =
      for row <- saved.capacity,
          us = row.server_us_per_request,
          us > 0,
          do: {"#{row.server} #{row.protocol}", "CPU of a request", us}

    cells ++ capacity
  end
end
