defmodule Tame.ReportPageTest do
  @moduledoc """
  The report in a real browser. What is missing for it is a failure that says what to run.
  """

  use ExUnit.Case, async: true

  alias Tame.LatencyFixture, as: Fixture
  alias Tame.ReportFixture

  @moduletag :browser
  @moduletag :tmp_dir

  @script Path.expand("report.mjs", __DIR__)
  @driver Path.expand("../../../labs/assets/node_modules/playwright-core", __DIR__)
  @chromium "/usr/bin/chromium"

  setup_all do
    node =
      System.find_executable("node") || flunk("node is not installed; run: apt-get install nodejs")

    if not File.exists?(@chromium),
      do: flunk("#{@chromium} is missing; run: apt-get install chromium")

    if not File.dir?(@driver), do: flunk("#{@driver} is missing; run: make assets")

    case Tame.Report.assets() do
      {:ok, assets} -> %{node: node, assets: assets}
      {:error, message} -> flunk(message)
    end
  end

  test "draws every chart on desktop, in the dark, on a phone and on paper", context do
    result = Fixture.result()
    check(context, result, "lab", [])
  end

  test "draws a run of one method, one call, and names full of markup", context do
    evil = ~s(<img src=x onerror="document.title='owned'"></script>)

    once = %{
      count: 1,
      p90_us: 3.0,
      p99_us: 3.0,
      p999_us: 3.0,
      max_us: 3.0,
      percentiles: [[100.0, 3.0]]
    }

    result =
      Fixture.result()
      |> Fixture.only(~w(port java_node))
      |> Fixture.update("port", once |> Map.merge(%{p50_us: 3.0, id: "port" <> evil}))
      |> Fixture.update("java_node", %{reason: evil})

    check(context, result, "odd", ["charts"])
  end

  defp check(context, latency, name, part) do
    path = Path.join(context.tmp_dir, "#{name}.html")
    saved = ReportFixture.saved()

    saved = put_in(saved.labs["latency"], ReportFixture.saved_lab(latency, Tame.Latency.Report))

    old = ReportFixture.saved(otp: "24")
    old = update_in(old.labs["reductions"].variants, &Enum.map(&1, fn v -> faster(v) end))
    page = Tame.Report.Page.render(saved, ReportFixture.labs(), old, "#{name}.json", context.assets)
    :ok = Tame.Output.write(path, page)

    {output, status} =
      System.cmd(context.node, [@script, path, Path.join(context.tmp_dir, name) | part],
        stderr_to_stdout: true
      )

    assert status == 0, output
    assert output =~ ~r/^[1-9]\d* passed, 0 failed$/m
    assert File.exists?(Path.join([context.tmp_dir, name, "phone.png"]))
  end

  defp faster(%{elapsed_us: nil} = variant), do: variant
  defp faster(variant), do: %{variant | elapsed_us: variant.elapsed_us / 2}
end
