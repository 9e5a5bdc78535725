defmodule Tame.BesideFixture do
  @moduledoc """
  A result of HTTP in a NIF beside cowboy as it is measured, with figures made up from typical runs; one server was not
  measured.
  """

  # CPU µs of a request: HTTP/1.1, HTTP/2.
  @servers [
    {"cowboy_stream", 14.4, 13.2},
    {"tame_http", 8.0, 4.0},
    {"cowboy", 21.0, 20.0},
    {"tame_http_process", 10.0, 5.0}
  ]

  @doc "The result."
  @spec result() :: map()
  def result do
    %{
      tool: "tame.http",
      format: 1,
      system: [tame: "0.1.0", command: "mix tame.report", otp: "25"],
      warnings: [],
      client: "h2load nghttp2/1.52.0",
      rounds: 1,
      for_s: 1,
      seed: 7,
      rows:
        for(
          {protocol, at} <- [{"h1", 1}, {"h2", 2}],
          server <- @servers,
          do: row(elem(server, 0), protocol, elem(server, at))
        ) ++ [none("tame_http_static", "h1")]
    }
  end

  defp row(server, protocol, us) do
    %{
      server: server,
      protocol: protocol,
      status: "ok",
      reason: nil,
      per_s: 1.0e6 / us,
      sent: 100_000,
      answered: 100_000,
      failed: 0,
      us_per_request: %{regular: us - 1.0, dirty: 0.0, poll: 0.0, aux: 0.0, other: 1.0},
      server_us_per_request: us,
      client_cores: 0.9,
      spread: %{per_s: [0.9e6 / us, 1.1e6 / us]}
    }
  end

  defp none(server, protocol) do
    Map.merge(row(server, protocol, 1.0), %{
      status: "failed",
      reason: "the server does not start",
      per_s: nil,
      us_per_request: nil,
      server_us_per_request: nil,
      client_cores: nil,
      spread: %{}
    })
  end
end
