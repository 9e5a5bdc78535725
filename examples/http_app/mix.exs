defmodule HttpApp.MixProject do
  use Mix.Project

  def project do
    [
      app: :http_app,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "priv/primes.so",
      deps: [
        {:tame, path: "../.."},
        {:tame_http, path: "../../libraries/http"},
        {:tame_sha3, path: "../../libraries/sha3"}
      ]
    ]
  end

  def application, do: [mod: {HttpApp, []}]
end
