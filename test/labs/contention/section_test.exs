defmodule Tame.Contention.SectionTest do
  # From a result to words: tables, advice, pictures, JSON.
  use ExUnit.Case, async: true

  alias Tame.Contention.{Advice, Format, Section}
  alias Tame.ContentionFixture, as: Fixture
  alias Tame.Report.Words

  defp section(result \\ Fixture.result()), do: Section.from_result(result)
  defp figure(section, id), do: Enum.find(section.figures, &(&1.id == id))
  defp panels, do: figure(section(), "utilisation").panels
  defp text(result, colours? \\ false), do: result |> Format.text(colours?) |> IO.iodata_to_binary()

  test "has the table, the delays, and pictures of each placement that was measured" do
    assert Enum.map(section().figures, & &1.id) == ~w(table delays utilisation advice)

    assert Enum.map(panels(), & &1.title) ==
             ~w(inline dirty_cpu yielding yielding_dirty auto erlang)

    assert figure(section(), "table").table.open
  end

  test "answers who starves" do
    assert [%{id: "flood", answer: answer, spec: spec}] = section().findings

    assert Words.plain(answer) ==
             "In a flood of 100 jobs of 100 ms for each scheduler a process gets no CPU for a second or more beside " <>
               "inline (1.3\u00A0s). Of the others it waits longest beside dirty_cpu (130\u00A0ms). Dirty work waits longest " <>
               "beside dirty_cpu (1\u00A0s)."

    assert [%{placement: "inline", kind: "processes"} | _] = spec.data.values

    calm = Fixture.update(Fixture.result(), "inline", %{neighbour_max_us: 9000.0})
    [%{answer: answer}] = section(calm).findings

    assert Words.plain(answer) =~
             "no process goes without CPU for a second. It waits longest beside dirty_cpu"
  end

  test "a cell has its colour, and says the same without it" do
    rows = figure(section(), "table").table.rows
    assert ["inline", {:dot, yellow, "127ms~"}, {:dot, red, "+1.3s!"} | _] = Enum.at(rows, 0)
    assert ["dirty_cpu", _, {:dot, ^red, "130ms~ dirty 1.0s!"} | _] = Enum.at(rows, 1)
    assert ["yielding", {:dot, green, "1.7ms"} | _] = Enum.at(rows, 2)
    assert ["thread", {:dot, grey, "not run"} | _] = Enum.at(rows, 4)
    assert length(Enum.uniq([yellow, red, green, grey])) == 4
    named = for {colour, _, _} <- section().words, do: colour
    assert Enum.all?([yellow, red, green, grey], &(&1 in named))
  end

  test "a cell that was stopped at its limit is marked" do
    assert ["yielding", _, _, _, {:dot, _, "17ms …"}] =
             Enum.at(figure(section(), "table").table.rows, 2)
  end

  test "a cell that failed says why, among the others' figures" do
    rows = figure(section(), "delays").table.rows

    assert ["thread 1 ms 1×", {:note, "failed: not run: 20000 threads" <> _}] =
             Enum.find(rows, &(hd(&1) =~ "thread"))

    columns = length(figure(section(), "delays").table.columns)
    assert Enum.all?(rows, &(length(&1) in [2, columns]))
  end

  test "two tables have every figure of a cell once" do
    titles =
      for id <- ~w(delays utilisation),
          {title, _} <- tl(figure(section(), id).table.columns),
          do: title

    assert titles == Format.figure_titles()
  end

  test "a picture has the CPU of each kind of thread, and when a neighbour waited" do
    inline = Enum.find(panels(), &(&1.title == "inline"))
    bars = Enum.group_by(inline.spec.data.values, & &1.lane)

    assert [%{from_ms: -20.0}, %{from_ms: from, to_ms: 20.0, text: "90 % of all cores"}, _] =
             bars["normal"]

    assert from == 0.0
    assert length(bars["other"]) == 3
    # 1214 ms, from 10 ms on.
    assert [%{from_ms: 10.0, to_ms: 1224.0}] = bars["neighbours"]
    assert String.replace(inline.note, "\u00A0", " ") =~ "Other threads used 2 % of all cores."
  end

  test "pictures of threads are on one scale" do
    assert [[-20.0, 1050.0]] =
             Enum.uniq(
               for %{spec: %{layer: [bars | _]}} <- panels(), do: bars.encoding.x.scale.domain
             )
  end

  test "delays have p50, p99 and max of each placement on a logarithmic axis" do
    spec = figure(section(), "delays").spec
    assert spec.encoding.x.scale.type == "log"
    assert Enum.count(spec.data.values, &(&1.placement == "auto")) == 3
  end

  test "every spec is plain Vega-Lite with its data inside" do
    for %{spec: %{} = spec} <- section().figures ++ panels() do
      json = spec |> Tame.JSON.encode() |> IO.iodata_to_binary()
      assert json =~ ~s("$schema":"https://vega.github.io/schema/vega-lite/)
      refute json =~ ~s("url")
    end
  end

  test "nothing measured is a report all the same" do
    result = Fixture.result()
    nothing = %{result | cells: Enum.filter(result.cells, &(&1.placement == "thread"))}

    assert [%{id: "table"}, %{id: "delays", spec: nil}] = section(nothing).figures
    assert text(nothing) =~ "thread 1 ms 1×  failed: not run"
    assert section(%{result | cells: []}).figures |> length() == 1
    assert text(%{result | cells: []}) =~ "A cell is"
  end

  describe "the advice" do
    test "names the placement with the least waits for each class of work that was measured" do
      assert [here, talk, busy] = Advice.sentences(Fixture.result())

      assert here =~
               "for work up to 1 ms use auto (neighbours late by 12 ms at p99, dirty work by 3.0 ms"

      refute here =~ "above 100 ms"
      assert talk =~ "inline for work up to 1 ms is contradicted: neighbours were late by 1.2 s"
      assert talk =~ "yielding for work up to 100 ms is confirmed"
      assert busy =~ "beside dirty_cpu 1 ms 100× neighbours were late by 124 ms at p99"
      assert busy =~ "and by 4.0 ms with +sbwt none +sbwtdcpu none +sbwtdio none"
    end

    test "confirms what the talk says where nothing waited for a second" do
      good =
        Fixture.update(Fixture.result(), "inline", %{
          neighbour_p99_us: 9000.0,
          dirty_cpu_wait_p99_us: 100.0
        })

      assert [%{verdict: :confirmed, best: %{placement: "inline"}} | _] = Advice.table(good.cells)
    end

    test "does not count the controls, nor more than 1000 jobs a scheduler" do
      many = Fixture.update(Fixture.result(), "auto", %{multiplier: 10_000})
      assert [%{best: %{placement: "yielding"}} | _] = Advice.table(many.cells)
    end

    test "is none of one placement alone, and what was not measured is no wait of 0" do
      one = %{
        Fixture.result()
        | cells:
            for(
              c <- Fixture.result().cells,
              c.placement == "inline",
              do: %{c | dirty_cpu_wait_p99_us: nil}
            )
      }

      assert [here, talk | _] = Advice.sentences(one)
      refute here =~ " use "
      assert here =~ "for work up to 1 ms only inline was measured, which is compared with nothing"
      assert here =~ "(neighbours late by 1.2 s at p99 in the worst cell, dirty work not measured)"
      assert talk =~ "contradicted: neighbours were late by 1.2 s, dirty work was not measured"

      assert [["up to 1 ms", "inline", "1214", nil, _, nil] | _] =
               figure(section(one), "advice").table.rows
    end

    test "is never a placement of which one cell failed" do
      failed = fn
        %{placement: "auto", multiplier: 100} = cell ->
          %{cell | status: "failed", neighbour_p99_us: nil, dirty_cpu_wait_p99_us: nil}

        %{placement: "yielding", multiplier: 1} = cell ->
          %{cell | status: "failed", neighbour_p99_us: nil}

        cell ->
          cell
      end

      cells = Enum.map(Fixture.result().cells, failed)

      assert [%{best: %{placement: "yielding_dirty"}}, %{verdict: :not_measured} = row | _] =
               Advice.table(cells)

      assert Advice.verdict_text(row) == "not measured: a cell failed"
    end

    test "says with which flags the figures were taken" do
      flags = %{Fixture.result() | flags: ~w(+sbwt none), calm: nil}
      assert List.last(Advice.sentences(flags)) =~ "with +sbwt none"
    end

    test "of nothing measured is none" do
      assert Advice.sentences(%{Fixture.result() | cells: []}) == []
    end
  end

  describe "text/2" do
    test "has the talk's tables, every cell's figures, and what the observers cost" do
      text = text(Fixture.result())
      assert text =~ ~r/^jobs of 1 ms +1× +100×$/m
      assert text =~ ~r/^dirty_cpu +13ms dirty 101ms~ +130ms~ dirty 1.0s!$/m

      [_ | figures] =
        Regex.run(~r/^inline 1 ms 100×  .*$/m, text) |> hd() |> String.split(~r/ {2,}/)

      assert %{
               "neighbour p50 ms" => "121",
               "p99 ms" => "1214",
               "max ms" => "1275",
               "missed s" => "1"
             } = Format.figure_titles() |> Enum.zip(figures) |> Map.new()

      assert length(figures) == length(Format.figure_titles())
      assert text =~ "The observers kept 0.800 % of one core busy"
      refute text =~ "\e["
    end

    test "in colour has the same texts" do
      colour = text(Fixture.result(), true)
      assert colour =~ "\e[31m+1.3s!\e[0m"
      assert String.replace(colour, ~r/\e\[\d+m/, "") == text(Fixture.result())
    end
  end

  test "JSON has exactly the keys of the format in each cell that went well, and a reason in the others" do
    path =
      Path.join(System.tmp_dir!(), "tame_contention_#{System.unique_integer([:positive])}.json")

    on_exit(fn -> File.rm(path) end)
    File.write!(path, Format.json(Fixture.result()))

    script = """
    const r = JSON.parse(require("fs").readFileSync(#{inspect(path)}, "utf8"));
    console.log(Object.keys(r).join(" "));
    console.log(Object.keys(r.cells[0]).join(" "));
    const thread = r.cells.find((c) => c.placement == "thread");
    console.log(thread.status, thread.neighbour_max_us, thread.reason.slice(0, 7));
    """

    assert {"tool format system warnings rounds seed cells\n" <>
              "placement duration_us multiplier jobs status neighbour_p50_us neighbour_p99_us neighbour_max_us " <>
              "missed_seconds dirty_cpu_wait_p99_us dirty_cpu_wait_max_us dirty_io_wait_max_us gc_wait_max_us " <>
              "longest_slice_us charge_ratio normal_utilisation dirty_cpu_utilisation other_cpu wall_ms ideal_ms " <>
              "long_schedule_events samples cpu held spread within\n" <>
              "failed null not run\n", 0} = System.cmd("node", ["-e", script])
  end

  test "hostile ids and reasons stay text in the page" do
    evil = ~s|</script><script>alert(1)</script>|

    result =
      Fixture.result()
      |> Fixture.update("thread", %{reason: evil})
      |> Fixture.update("auto", %{placement: "auto" <> evil})

    refute Tame.ReportFixture.page([section(result)], [{"os", evil}]) =~ "<script>alert"
  end
end
