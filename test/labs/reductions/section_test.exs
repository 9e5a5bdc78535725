defmodule Tame.Reductions.SectionTest do
  use ExUnit.Case, async: true

  alias Tame.Reductions.Section
  alias Tame.ReductionsFixture, as: Fixture
  alias Tame.Report.Words

  defp section(result \\ Fixture.result()), do: Section.from_result(result)

  defp figure(section, id), do: Enum.find(section.figures, &(&1.id == id))

  defp panels(section), do: figure(section, "slices").panels

  defp charts(section), do: [figure(section, "harm") | panels(section)]

  defp values(figure), do: figure.spec.data.values

  defp rows(section) do
    section
    |> figure("harm")
    |> then(& &1.table.rows)
    |> Enum.group_by(&hd/1, &tl/1)
  end

  test "has the harm of all variants, then the slices of each that was measured" do
    assert Enum.map(section().figures, & &1.id) == ["harm", "slices"]

    assert Enum.map(panels(section()), & &1.title) ==
             ~w(crypto_exor exor_yielding exor_dirty exor_classic exor_loop)
  end

  test "says size, rounds, and what the instruments do by themselves" do
    assert {"each of two inputs", "256 MiB (268,435,456 B)"} in section().facts
    assert {"neighbour at rest", "130 µs late at p99, 1063 µs at most"} in section().facts
    assert [%{id: :too_few_wake_ups}] = figure(section(), "harm").warnings
  end

  test "answers what a large job does to its neighbours, the worst first" do
    result = Fixture.update(Fixture.result(), "exor_dirty", %{neighbour_max_us: 11_200.0})
    assert [%{id: "job", answer: answer} = finding] = section(result).findings

    assert Words.plain(answer) ==
             "A job on 256\u00A0MiB keeps a process on its scheduler waiting for 11\u00A0ms on a dirty scheduler and " <>
               "230\u00A0µs in slices."

    assert Enum.map(values(finding), & &1.text) == ["11\u00A0ms", "230\u00A0µs"]
    assert hd(section(result).conclusion) == answer
    assert section(Fixture.only(Fixture.result(), ["exor_loop"])).findings == []
  end

  test "names those that held their scheduler for longer than the budget" do
    text = section().conclusion |> List.last() |> Words.plain()

    assert text =~
             "exor_loop (34\u00A0ms), exor_classic (6.5\u00A0ms) and crypto_exor (4.2\u00A0ms); not by exor_yielding and exor_dirty."

    good = section(Fixture.only(Fixture.result(), ["exor_yielding", "exor_dirty"]))
    assert List.last(good.conclusion) =~ "None held its scheduler for longer than the budget"
  end

  test "has two rows a variant, by the state of its pages, the unmeasured ones last with their reason" do
    assert [at_hand, ["fresh" | _]] = rows(section())["exor_yielding"]

    assert [
             "at hand",
             "31.0",
             "10.0",
             "12",
             "297",
             "168",
             "131",
             "0",
             nil,
             "124000",
             "1.01",
             "148",
             "231"
           ] = at_hand

    assert [[{:note, "the library's own threads; skipped: there is no module tame_exor"}]] =
             rows(section())["exor_pool"]

    order = for [id | _] <- figure(section(), "harm").table.rows, do: id
    assert Enum.take(order, -2) == ["exor_pool", "exor_wrong"]
    columns = length(figure(section(), "harm").table.columns)

    for row <- figure(section(), "harm").table.rows, do: assert(length(row) in [2, columns])
  end

  test "draws harm with a dot for each thing that was seen, and says what is missing" do
    harm = figure(section(), "harm")
    kinds = for %{variant: id, kind: kind} <- values(harm), do: {id, kind}
    assert {"exor_dirty", "dirty"} in kinds
    refute {"exor_yielding", "dirty"} in kinds
    # Too short for a wake-up of the neighbour.
    refute {"exor_loop", "neighbour"} in kinds
    assert Enum.join(harm.caption) =~ "Not drawn: exor_pool, skipped: there is no module tame_exor"
  end

  test "draws each slice from its start to its end at its length" do
    slices = Enum.at(panels(section()), 2)

    assert %{start_ms: start, end_ms: stop, us: us} =
             Enum.find(values(slices), &(&1.kind == "dirty"))

    assert us == 33_400.0
    assert_in_delta stop - start, 33.4, 0.001
    assert slices.spec.encoding.y.scale.type == "log"
  end

  test "says how many slices are left out" do
    [first, _, _, classic | _] = panels(section())
    assert first.note =~ "201 of 13,700 slices: of each few in a row the longest."
    refute classic.note =~ "of each few"
  end

  test "draws slices on one scale, and says where a run goes on" do
    scales =
      for %{spec: %{encoding: encoding}} <- panels(section()),
          do: {encoding.x.scale, encoding.y.scale}

    assert [{%{domain: [0, last_ms]}, _}] = Enum.uniq(scales)
    [crypto, yielding | _] = panels(section())
    assert crypto.note =~ "750\u00A0ms in all; the first 100\u00A0ms are drawn."
    assert Enum.all?(values(crypto), &(&1.start_ms <= last_ms))
    refute yielding.note =~ "are drawn"
  end

  test "has the limits in every chart, at any figures" do
    tiny = %{
      longest_slice_us: 0.0,
      neighbour_max_us: 0.0,
      picture: [%{start_us: 0.0, us: 0.0, kind: "normal"}]
    }

    result =
      Fixture.result() |> Fixture.only(["exor_yielding"]) |> Fixture.update("exor_yielding", tiny)

    for figure <- charts(section(result)) do
      axis = if figure.id == "harm", do: figure.spec.encoding.x, else: figure.spec.encoding.y
      [low, high] = axis.scale.domain
      assert low > 0 and low < 100 and high > 1000
      for row <- values(figure), do: assert(row.us >= low)
    end
  end

  test "is a table alone when nothing was measured" do
    result = Fixture.only(Fixture.result(), ["exor_pool", "exor_wrong"])
    assert [%{id: "harm", spec: nil, table: %{rows: [_, _]}}] = section(result).figures
    assert [%{id: "harm", spec: nil}] = section(%{result | variants: []}).figures
  end

  test "every spec is plain Vega-Lite with its data inside" do
    for figure <- charts(section()) do
      json = figure.spec |> Tame.JSON.encode() |> IO.iodata_to_binary()
      assert json =~ ~s("$schema":"https://vega.github.io/schema/vega-lite/)
      assert json =~ ~s("tooltip")
      refute json =~ ~s("url")
      assert values(figure) != []
    end
  end

  test "hostile ids and reasons stay text in the page" do
    evil = ~s|</script><script>alert(1)</script>|

    result =
      Fixture.result()
      |> Fixture.update("exor_pool", %{reason: evil, id: evil})
      |> Fixture.update("exor_dirty", %{id: "dirty" <> evil, about: evil})

    refute Tame.ReportFixture.page([section(result)], [{"os", evil}]) =~ "<script>alert"
  end
end
