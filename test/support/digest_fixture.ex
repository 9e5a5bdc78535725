defmodule Tame.DigestFixture do
  @moduledoc "A result of the digest lab as the lab returns it, with figures made up from typical runs."

  # Bytes, then µs of a call.
  @calls [
    {64, crypto: 0.51, tame_sha3: 0.52, kt128: 1.76},
    {4_194_304, crypto: 8892.0, tame_sha3: 7709.0, kt128: 701.0}
  ]

  # MB/s, then delays in µs.
  @load [
    nobody: {0.0, 132.0, 205.0, 2120.0},
    crypto: {871.0, 120.0, 1210.0, 1250.0},
    tame_sha3: {1025.0, 172.0, 230.0, 248.0},
    hash_many: {5599.0, 151.0, 236.0, 263.0},
    kt128: {10_907.0, 113.0, 189.0, 200.0}
  ]

  @doc "The result."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.digest",
      format: 1,
      system: [tame: "0.1.0", command: "mix tame.report", otp: "25"],
      warnings: [],
      implementation: "avx512",
      openssl: "OpenSSL 3.0.19",
      rounds: 5,
      seed: 7,
      calls:
        for(
          {bytes, ways} <- @calls,
          {way, us} <- ways,
          do: %{bytes: bytes, way: to_string(way), us: us, spread_us: [0.99 * us, 1.01 * us]}
        ),
      load:
        for(
          {way, {mb, p50, p99, longest}} <- @load,
          do: %{way: to_string(way), mb_per_s: mb, p50_us: p50, p99_us: p99, max_us: longest}
        )
    }
  end
end
