defmodule Tame.ReportFixture do
  @moduledoc "A saved report with the made-up results of all labs, as it is read from its JSON."

  alias Tame.Report.Saved

  @labs [
    {Tame.Latency.Report, Tame.LatencyFixture},
    {Tame.Reductions.Report, Tame.ReductionsFixture},
    {Tame.Contention.Report, Tame.ContentionFixture},
    {Tame.Load.Report, Tame.LoadFixture},
    {Tame.Load.BesideReport, Tame.BesideFixture},
    {Tame.NativeIO.Report, Tame.NativeIOFixture},
    {Tame.Isolation.Report, Tame.IsolationFixture},
    {Tame.Audit.Report, Tame.AuditFixture},
    {Tame.Digest.Report, Tame.DigestFixture}
  ]

  @system [
    tame: "0.1.0",
    otp: "25",
    elixir: "1.14.0",
    flavor: "jit",
    build_type: "opt",
    schedulers: 2,
    clock_step_ns: 1,
    os: "Debian GNU/Linux 12 (bookworm)",
    cpu: "AMD EPYC 7B13",
    cores: 2,
    cpu_quota: :none,
    others_percent: 42
  ]

  @from ~U[2026-03-01 09:30:00Z]

  @doc "The labs' modules for the report."
  @spec labs() :: [module()]
  def labs, do: for({lab, _} <- @labs, do: lab)

  @doc "The report as JSON; `system` replaces facts of its machine."
  @spec json(keyword()) :: binary()
  def json(system \\ []) do
    system = Keyword.merge(@system, system)
    results = for {lab, fixture} <- @labs, do: {lab, Map.put(fixture.result(), :system, system)}

    results
    |> Saved.new("mix tame.report", @from, DateTime.add(@from, 200))
    |> Saved.encode()
    |> IO.iodata_to_binary()
  end

  @doc "The report as `:tame_json` reads it, and such a term as JSON again."
  @spec decoded() :: map()
  def decoded do
    {:ok, report} = :tame_json.decode(json())
    report
  end

  @spec encoded(map()) :: binary()
  def encoded(report), do: report |> nulls() |> Tame.JSON.encode() |> IO.iodata_to_binary()

  defp nulls(%{} = object), do: Map.new(object, fn {key, value} -> {key, nulls(value)} end)
  defp nulls(list) when is_list(list), do: Enum.map(list, &nulls/1)
  defp nulls(:null), do: nil
  defp nulls(value), do: value

  @doc "The report, read from its JSON."
  @spec saved(keyword()) :: Saved.t()
  def saved(system \\ []) do
    {:ok, saved} = Saved.decode(json(system), labs())
    saved
  end

  @doc "Sections as a page, without style and script."
  @spec page([Tame.Report.Section.t()], Tame.Report.system()) :: binary()
  def page(sections, system) do
    sections |> Tame.Report.render(system, assets: %{css: "", js: ""}) |> IO.iodata_to_binary()
  end

  @doc "One lab's result as it is read from a saved report."
  @spec saved_lab(map(), module()) :: map()
  def saved_lab(result, lab) do
    json =
      [{lab, Map.put(result, :system, @system)}]
      |> Saved.new("mix tame.report", @from, @from)
      |> Saved.encode()

    {:ok, saved} = json |> IO.iodata_to_binary() |> Saved.decode([lab])
    saved.labs[lab.name()]
  end
end
