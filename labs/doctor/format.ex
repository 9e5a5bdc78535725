defmodule Tame.Doctor.Format do
  @moduledoc "What the doctor found as text for a terminal and as JSON. All pure."

  alias Tame.Result

  @doc "A line for each finding, below it what mends it; then the isolated modules."
  @spec text(Tame.Doctor.result()) :: iodata()
  def text(result) do
    width = result.findings |> Enum.map(&String.length("#{&1.id}")) |> Enum.max()

    [
      for finding <- result.findings do
        mend =
          if finding.mend, do: ["         ", pad("", width), "  -> ", finding.mend, ?\n], else: []

        [pad(finding.state, 9), pad(finding.id, width), "  ", finding.text, ?\n, mend]
      end,
      for module <- result.isolated do
        [
          "\n#{inspect(module.module)}  #{module.state}, restarts of hosts: #{module.restarts}\n",
          for(host <- module.hosts, do: ["  ", host(host), ?\n])
        ]
      end
    ]
  end

  defp host(%{since: nil} = host), do: "OS process #{host.os_pid}: #{host.state}"
  defp host(host), do: "OS process #{host.os_pid}: up since #{host.since}"

  defp pad(text, width), do: String.pad_trailing("#{text}", width)

  @doc "The result as JSON: `tool`, `format`, `system`, `findings`, `isolated`."
  @spec json(Tame.Doctor.result()) :: iodata()
  def json(result) do
    isolated =
      for module <- result.isolated do
        %{
          module
          | hosts: Enum.map(module.hosts, &%{&1 | since: &1.since && DateTime.to_iso8601(&1.since)})
        }
      end

    Result.json(%{tool: "tame.doctor", format: 1, system: result.system},
      findings: result.findings,
      isolated: isolated
    )
  end
end
