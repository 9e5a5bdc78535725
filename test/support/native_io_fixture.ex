defmodule Tame.NativeIOFixture do
  @moduledoc """
  A result of native I/O as it is measured, with figures made up from typical runs; one package was not there, one placement
  was not measured.
  """

  # p50 of 64 B and of 64 KiB, in µs.
  @trips [
    {"socket_tcp", 17.0, 44.0},
    {"socket_otp", 18.0, 42.0},
    {"nng_nif", 20.0, 36.0},
    {"nng_driver", 30.0, 108.0}
  ]

  # A neighbour's p50, p99 and greatest delay, in ms.
  @cells [{"driver_inline", 28.0, 105.0, 116.0}, {"driver_dirty", 0.1, 3.0, 20.0}]

  @doc "The result."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.native_io",
      format: 1,
      system: [tame: "0.1.0", command: "mix tame.report", otp: "25"],
      warnings: [],
      iterations: 10_000,
      rounds: 5,
      seed: 7,
      trips:
        for({bytes, at} <- [{64, 1}, {65_536, 2}], trip <- @trips, do: trip(trip, at, bytes)) ++
          [none("socket_tame_tcp")],
      cells: Enum.map(@cells, &cell/1) ++ [failed("driver_async")]
    }
  end

  defp trip(trip, at, bytes) do
    us = elem(trip, at)

    %{
      method: elem(trip, 0),
      bytes: bytes,
      status: "ok",
      reason: nil,
      p50_us: us,
      p50_spread_us: [0.9 * us, 1.1 * us],
      p99_us: 3 * us
    }
  end

  defp none(method) do
    %{
      method: method,
      bytes: 64,
      status: "skipped",
      reason: "there is no tame_tcp here",
      p50_us: nil,
      p50_spread_us: nil,
      p99_us: nil
    }
  end

  defp cell({placement, p50, p99, max}) do
    %{
      placement: placement,
      status: "ok",
      reason: nil,
      finished: 180,
      wall_ms: 1050,
      neighbour_p50_us: 1000 * p50,
      neighbour_p99_us: 1000 * p99,
      neighbour_max_us: 1000 * max
    }
  end

  defp failed(placement) do
    %{
      placement: placement,
      status: "failed",
      reason: "the node ended",
      finished: nil,
      wall_ms: nil,
      neighbour_p50_us: nil,
      neighbour_p99_us: nil,
      neighbour_max_us: nil
    }
  end
end
