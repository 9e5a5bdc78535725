defmodule Tame.Latency.SectionTest do
  use ExUnit.Case, async: true

  alias Tame.Latency.{Lines, Methods, Section}
  alias Tame.LatencyFixture, as: Fixture
  alias Tame.Report.Words

  @pictures ~w(kinds drivers nifs threads isolation)

  defp section(result \\ Fixture.result()), do: Section.from_result(result)

  defp figure(section, id), do: Enum.find(section.figures, &(&1.id == id))

  defp ids(section), do: Enum.map(section.figures, & &1.id)

  defp panels(section), do: figure(section, "pictures").panels

  defp panel(section, id), do: Enum.find(panels(section), &(&1.id == id))

  # All that has a chart, with its data.
  defp charts(section), do: Enum.filter(section.figures, & &1.spec) ++ panels(section)

  defp values(figure), do: figure.spec.data.values

  defp drawn(figure), do: figure |> values() |> Enum.map(& &1.method) |> Enum.uniq()

  defp rows(figure), do: Map.new(figure.table.rows, fn [id | cells] -> {id, cells} end)

  # The colours and dashes that a percentile chart gives to its methods.
  defp lines(figure) do
    [%{encoding: %{strokeDash: dash}} | _] = figure.spec.layer
    colour = figure.spec.encoding.color.scale
    assert dash.scale.domain == colour.domain
    Enum.zip(colour.domain, Enum.zip(colour.range, dash.scale.range))
  end

  describe "from_result/1" do
    test "has the overview, the five pictures side by side and the percentiles" do
      assert ids(section()) == ["overview", "pictures", "percentiles"]
      assert Enum.map(panels(section()), & &1.id) == @pictures
    end

    test "has warnings beside what they concern, and says payload, calls and rounds" do
      section = section()
      assert [%{id: :machine_busy, text: "The load" <> _}] = section.warnings
      assert [%{id: :overhead_visible}] = figure(section, "overview").warnings

      assert {"payload", "64 KiB (65,536 B)"} in section.facts
      assert {"calls a method", "100,000 in 10 rounds"} in section.facts
    end

    test "takes warnings that are structs" do
      result = %{Fixture.result() | warnings: [%Tame.Warning{id: :x, text: "t"}]}
      assert section(result).warnings == [%{id: :x, text: "t"}]
    end

    test "answers the first screen's questions, and begins with the answer" do
      [call, isolation] = section().findings
      assert {call.id, isolation.id} == {"call", "isolation"}

      assert Words.plain(call.answer) ==
               "A port takes 2,500 times as long as a NIF: 180\u00A0µs instead of 0.072\u00A0µs, for 64\u00A0KiB there " <>
                 "and back; a dirty NIF 3\u00A0µs, a port driver 4.6\u00A0µs, an isolated NIF 0.71\u00A0µs and a C node 140\u00A0µs."

      assert Words.plain(isolation.answer) =~ "costs 0.71\u00A0µs with 64\u00A0KiB, 9.9 times a NIF"
      assert hd(section().conclusion) == call.answer
      assert length(values(call)) == 6
    end

    test "answers with what was measured when there is no NIF or no port" do
      assert [%{id: "call", answer: answer}] =
               section(Fixture.only(Fixture.result(), ~w(nif_dirty_cpu c_node))).findings

      assert answer ==
               "For 64\u00A0KiB there and back takes a dirty NIF 3\u00A0µs and a C node 140\u00A0µs."

      assert section(Fixture.only(Fixture.result(), ~w(beam_call))).findings == []

      assert section(Fixture.only(Fixture.result(), ~w(java_node))).conclusion == [
               "No method was measured."
             ]
    end

    test "renders as a page" do
      page = Tame.Report.render([section()], Fixture.result().system, assets: %{css: "", js: ""})
      page = IO.iodata_to_binary(page)
      assert page =~ "Isolation against latency"
      assert page =~ "exit status 139"
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
  end

  describe "the overview" do
    test "draws the measured methods fastest first" do
      overview = figure(section(), "overview")
      p50s = for row <- values(overview), do: row.us

      assert length(p50s) == 17
      assert p50s == Enum.sort(p50s)
    end

    test "colours isolation as the words above it do" do
      scale = figure(section(), "overview").spec.encoding.color.scale
      words = for {colour, name, _} <- section().words, do: {name, colour}
      assert Enum.zip(scale.domain, scale.range) == words
    end

    test "lists all methods, the others last with their reason" do
      table = figure(section(), "overview").table
      assert length(table.rows) == 19
      assert length(table.columns) == 12

      assert [
               {:dot, _, "shared"},
               "Erlang term",
               "none",
               "0.072",
               "0.081",
               "0.140",
               "0.610",
               "31.5",
               "0.077",
               "1.00",
               "0"
             ] = rows(figure(section(), "overview"))["nif_normal"]

      assert [["driver_outputv" | failed], ["java_node" | skipped]] = Enum.take(table.rows, -2)

      assert List.last(failed) ==
               {:note, "failed: the port ended after 31,204 calls (exit status 139)"}

      assert {:note, "skipped: no JDK" <> _} = List.last(skipped)
    end

    test "has no multiples without nif_normal, nor when it took no time" do
      without = Fixture.only(Fixture.result(), ~w(port c_node))
      too_fast = Fixture.update(Fixture.result(), "nif_normal", %{p50_us: 0.0})

      for result <- [without, too_fast] do
        [_, _, _, _, _, _, _, _, _, times, _] = rows(figure(section(result), "overview"))["port"]
        assert times == nil
      end
    end

    test "is a table alone when nothing was measured" do
      result = Fixture.only(Fixture.result(), ~w(driver_outputv java_node))
      assert [%{id: "overview", spec: nil, table: table}] = section(result).figures
      assert length(table.rows) == 2
      assert [%{id: "overview", spec: nil}] = section(%{result | methods: []}).figures
    end
  end

  describe "a picture" do
    test "holds its methods, one line each" do
      section = section()
      assert drawn(panel(section, "kinds")) == ~w(c_node port driver_call nif_normal)

      assert drawn(panel(section, "nifs")) ==
               ~w(nif_normal nif_yielding nif_dirty_cpu nif_dirty_io nif_yielding_dirty)

      assert drawn(panel(section, "threads")) == ~w(nif_thread_new nif_thread_queue nif_dirty_cpu)
    end

    test "says which of its methods is missing and why" do
      drivers = panel(section(), "drivers")
      assert drawn(drivers) == ~w(driver_call driver_control driver_async)
      assert drivers.note =~ "Not drawn: driver_outputv, failed: the port ended"
    end

    test "says which of its methods was not asked for" do
      kinds = Fixture.result() |> Fixture.only(~w(nif_normal port)) |> section() |> panel("kinds")
      assert drawn(kinds) == ~w(port nif_normal)

      assert kinds.note =~
               "c_node, not part of this run; driver_call, not part of this run"
    end

    test "is left out when none of its methods was measured" do
      section = Fixture.result() |> Fixture.only(~w(c_node driver_outputv)) |> section()
      assert Enum.map(panels(section), & &1.id) == ["kinds"]
    end

    test "is on one scale with the others" do
      scales =
        for %{spec: %{encoding: encoding}} <- panels(section()),
            do: {encoding.x.scale, encoding.y.scale}

      assert [_] = Enum.uniq(scales)
    end

    test "gives each of its lines a colour and a dash of its own" do
      for picture <- panels(section()) ++ [figure(section(), "percentiles")] do
        lines = for {_, line} <- lines(picture), do: line
        assert lines == Enum.uniq(lines)
      end
    end
  end

  describe "latency by percentile" do
    test "holds the exact percentiles of the table among the histogram's steps, in order" do
      rows = for row <- values(figure(section(), "percentiles")), row.method == "port", do: row
      marked = for row <- rows, row.mark, do: {row.percentile, row.us}

      assert marked == [
               {"50 %", 180.0},
               {"90 %", 226.0},
               {"99 %", 391.0},
               {"99.9 %", 1190.0},
               {"100 % (max)", 12_345.0}
             ]

      shares = for row <- rows, do: row.share
      assert shares == Enum.sort(shares)
      assert hd(shares) == 1.0
      assert List.last(shares) == 100_000.0
    end

    test "draws a reading of zero at the clock's nanosecond" do
      result =
        Fixture.update(Fixture.result(), "beam_call", %{
          p50_us: 0.0,
          percentiles: [[0.0, 0.0], [100.0, 14.2]]
        })

      for figure <- charts(section(result)), row <- values(figure), do: assert(row.us > 0)
    end

    test "draws a method with a single sample" do
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
        |> Fixture.only(["port"])
        |> Fixture.update("port", Map.put(once, :p50_us, 3.0))

      assert [_ | _] = values(figure(section(result), "percentiles"))
    end

    test "draws a method from elsewhere in its isolation's colour" do
      result = Fixture.update(Fixture.result(), "port", %{id: "my_port"})

      {_, {colour, _}} =
        result |> section() |> figure("percentiles") |> lines() |> List.keyfind("my_port", 0)

      assert colour == Lines.isolation("process")
    end
  end

  test "hostile ids and reasons stay text in the page" do
    evil = ~s|</script><script>alert(1)</script>|

    result =
      Fixture.result()
      |> Fixture.update("java_node", %{reason: evil, id: evil})
      |> Fixture.update("port", %{id: "port" <> evil, data_type: evil})

    refute Tame.ReportFixture.page([section(result)], [{"os", evil}]) =~ "<script>alert"
  end

  test "each method has its own pair of colour and dash, and no line is that of a method that is gone" do
    described = for module <- Methods.builtin(), do: module.describe()
    lines = for %{id: id, isolation: of} <- described, do: Lines.line("#{id}", "#{of}")
    assert lines == Enum.uniq(lines)
    assert Lines.ids() -- Enum.map(described, &"#{&1.id}") == []
  end
end
