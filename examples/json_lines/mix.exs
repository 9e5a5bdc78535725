defmodule JsonLines.MixProject do
  use Mix.Project

  def project do
    [
      app: :json_lines,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "priv/json_lines.so",
      elixirc_paths: if(Mix.env() == :test, do: ["test/support"], else: []),
      # The labs measure; nothing in production needs them.
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  # Debian's jiffy, to compare with.
  def application, do: [extra_applications: applications(Mix.env())]

  defp applications(:test), do: [:proper, :jiffy]
  defp applications(:dev), do: [:jiffy]
  defp applications(:prod), do: []
end
