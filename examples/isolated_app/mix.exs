defmodule IsolatedApp.MixProject do
  use Mix.Project

  def project do
    [
      app: :isolated_app,
      version: "1.0.0",
      elixir: "~> 1.14",
      deps: [{:tame, path: "../.."}]
    ]
  end

  # jiffy comes from the system here (Debian: erlang-jiffy), so it is named like an application of OTP, and the release
  # takes it from there. In a project that gets it by {:jiffy, "~> 1.1"} it is not listed here.
  def application do
    [extra_applications: [:jiffy]]
  end
end
