defmodule Tame.Load.BesideTest do
  # Not async: a server in a closed loop uses all cores.
  use ExUnit.Case

  alias Tame.BesideFixture, as: Fixture
  alias Tame.Load.{Beside, BesideReport, BesideSection, TameHTTP}
  alias Tame.Report.Words

  doctest Tame.Load.Beside

  @missing (case Beside.prepare() do
              {:ok, _} -> false
              {:error, why} -> why
            end)
  if @missing, do: IO.puts("skip: HTTP in a NIF, beside cowboy: #{@missing}")

  defp section(result \\ Fixture.result()), do: BesideSection.from_result(result)

  @tag skip: @missing
  test "each server answers all that it is asked, and its threads are told apart" do
    {:ok, plan} = Beside.prepare(seed: 3)
    result = Beside.run(plan)
    assert Beside.ok?(result)
    assert length(result.rows) == 10

    for row <- result.rows do
      assert {row.server, row.reason} == {row.server, nil}
      assert row.answered > 1000 and row.server_us_per_request > 0
    end

    # The protocol of the one runs on schedulers, that of the other on threads of its own.
    of = fn server, kind ->
      row = Enum.find(result.rows, &(&1.server == server and &1.protocol == "h2"))
      row.us_per_request[kind] / row.server_us_per_request
    end

    assert of.("cowboy", :regular) > 0.8
    assert of.("tame_http_static", :other) > 0.8
    assert length(Beside.ratios(result.rows)) == 4

    # What is saved has the shape that is read again.
    json = BesideReport.to_save(result) |> Tame.JSON.encode() |> IO.iodata_to_binary()
    {:ok, saved} = :tame_json.decode(json)
    assert Tame.Report.Shape.check(saved, BesideReport.shape()) == :ok
    assert IO.iodata_to_binary(BesideReport.text(result)) =~ "cowboy ÷ tame_http_process, h2: "
  end

  test "says how many times as much a request costs, of those that do the same work" do
    said = Enum.map(section().conclusion, &String.replace(Words.plain(&1), "\u00A0", " "))

    assert said == [
             "A request costs cowboy_stream 1.8 × (HTTP/1.1) and 3.3 × (HTTP/2) as much CPU as tame_http.",
             "A request costs cowboy 2.1 × (HTTP/1.1) and 4 × (HTTP/2) as much CPU as tame_http_process."
           ]
  end

  test "draws the threads of each server, and says which was not measured" do
    [figure] = section().figures
    assert "Not measured: tame_http_static h1, the server does not start." in figure.caption
    values = figure.spec.data.values
    assert length(values) == 8 * 5
    assert %{server: "tame_http h2", kind: "other", cpu: 1.0} in values
    assert length(figure.table.rows) == 9
  end

  test "says nothing of what it has not: no row, and one that took no time" do
    result = Fixture.result()
    assert section(%{result | rows: []}).conclusion == []
    rows = for row <- result.rows, do: %{row | server_us_per_request: 0.0}
    assert section(%{result | rows: rows}).conclusion == []
  end

  test "a folder that is none of tame_http's is named" do
    before = System.get_env("TAME_HTTP")
    System.put_env("TAME_HTTP", "/none")

    on_exit(fn ->
      if before, do: System.put_env("TAME_HTTP", before), else: System.delete_env("TAME_HTTP")
    end)

    assert {:error, "TAME_HTTP=/none: expected a folder with ebin/tame_http.beam" <> _} =
             TameHTTP.find()

    assert TameHTTP.code_path() == []
  end
end
