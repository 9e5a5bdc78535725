defmodule Zstd.MixProject do
  use Mix.Project

  def project do
    [
      app: :zstd,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "priv/zstd_nif.so",
      # The labs measure; nothing in production needs them.
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  def application, do: [extra_applications: if(Mix.env() == :test, do: [:proper], else: [])]
end
