defmodule Tame.Load.SectionTest do
  # From a result to words: text, JSON, sentences, pictures.
  use ExUnit.Case, async: true

  alias Tame.Load
  alias Tame.Load.{Format, Report, Section}
  alias Tame.LoadFixture, as: Fixture
  alias Tame.Report.Words

  defp section(result \\ Fixture.result()), do: Section.from_result(result)
  defp figure(section, id), do: Enum.find(section.figures, &(&1.id == id))
  defp text(result \\ Fixture.result()), do: result |> Format.text() |> IO.iodata_to_binary()

  test "begins with the rates that are held, who keeps hello alive, and the talk's claim" do
    said = Enum.map_join(section().conclusion, " ", &Words.plain/1) |> String.replace("\u00A0", " ")

    assert said =~
             "With jobs of 10 ms hello stays within 10 ms (its p99) up to 200 jobs a second beside pool, not even at 12 beside inline."

    assert said =~
             "With jobs of 10 ms at 200 % of what the cores can do, hello takes a second or more beside inline (3.7 s), " <>
               "is slow beside dirty_cpu (210 ms), is answered at once beside yielding (9.2 ms) and pool (2.1 ms) (its p99)."

    assert said =~ "the yielding form keeps hello alive where the plain NIF kills it."
    assert [%{id: "load", answer: held, spec: %{data: %{values: rows}}}] = section().findings
    assert Words.plain(held) =~ "up to 200"

    assert for(row <- rows, do: {row.placement, row.amount, row.text}) == [
             {"pool", 200, "200/s"},
             {"inline", 0, "none"}
           ]
  end

  test "without limits the first screen says how late hello was" do
    assert [%{id: "load", answer: late}] = section(%{Fixture.result() | limits: []}).findings
    assert Words.plain(late) =~ "hello takes a second or more beside inline"
  end

  test "hello that has no answer is told beside its time" do
    lossy = fn
      %{placement: "pool"} = cell -> %{cell | hello_refused: 2025, hello_answered: 225}
      cell -> cell
    end

    result = update_in(Fixture.result().cells, &Enum.map(&1, lossy))

    said =
      Enum.map_join(section(result).conclusion, " ", &Words.plain/1)
      |> String.replace("\u00A0", " ")

    assert said =~
             "takes a second or more, or has no answer, beside inline (3.7 s) and pool (2.1 ms, 90 % refused or failed)"

    [limit | _] = result.limits
    over = Map.merge(limit.overload, %{hello_planned: 100, hello_refused: 0, hello_failed: 40})
    assert "45ms, 40 % refused or failed" in Format.limit_row(%{limit | overload: over})
    assert text(result) =~ ~r/^placement +hello p50 .* failed +refused +jobs/m
  end

  test "the table has every placement and length of a job, and a server that died" do
    assert %{columns: [_, {"no job", _}, {"10 ms", _}], rows: rows} =
             figure(section(), "hello").table

    assert ["inline", nil, {:dot, _, "3.7s"}] = Enum.find(rows, &(hd(&1) == "inline"))
    assert ["nothing", {:dot, _, "0.9ms"}, nil] = Enum.find(rows, &(hd(&1) == "nothing"))
    assert ["thread", nil, {:dot, _, "died"}] = Enum.find(rows, &(hd(&1) == "thread"))
    assert ["auto", nil, "failed"] = Enum.find(rows, &(hd(&1) == "auto"))
    caption = Enum.join(figure(section(), "hello").caption)
    assert caption =~ "The server died after 3.1 s, signal 11: thread, 10 ms."
    assert caption =~ "Not measured: auto, 10 ms, the peer node does not start."
  end

  test "pictures over time are on one scale, with clients and threads in one" do
    panels = figure(section(), "time").panels
    assert Enum.map(panels, & &1.title) == ~w(inline yielding dirty_cpu pool)
    assert [[-500, 4000]] = Enum.uniq(for panel <- panels, do: span(panel.spec))
    lanes = for bar <- hd(panels).spec.data.values, uniq: true, do: bar.lane
    assert Enum.sort(lanes) == ~w(held hello jobs late other regular utilisation)
    assert hd(panels).note =~ "600 of 1,000 jobs answered, 0 refused; hello was not back to normal"
  end

  defp span(spec), do: hd(spec.layer).encoding.x.scale.domain

  test "what a request costs is a bar of its threads" do
    capacity = figure(section(), "capacity")
    assert for(v <- capacity.spec.data.values, v.kind == "regular", do: v.cpu) == [20.0]
    assert [["cowboy", "h2", "71,000" | _], ["cowboy_stream" | _]] = capacity.table.rows
    assert Enum.join(capacity.caption) =~ "Not measured: cowboy_stream h2, it did not answer."
  end

  test "limits are a table; without one, or without capacity, there is no figure" do
    assert [["inline", "10 ms", nil | _], ["pool", "10 ms", "200", "4.0ms", "400" | _]] =
             figure(section(), "limits").table.rows

    less = section(%{Fixture.result() | limits: [], capacity: []})
    assert figure(less, "limits") == nil and figure(less, "capacity") == nil
  end

  test "what was not measured is a section all the same" do
    failed = %{
      Fixture.result()
      | cells: Enum.filter(Fixture.result().cells, &(&1.status == "failed"))
    }

    assert section(%{failed | limits: []}).findings == []
    assert figure(section(failed), "hello").spec == nil
    assert text(failed) =~ "auto, 10 ms  failed: the peer node does not start"
    refute Load.ok?(failed)
    assert section(%{failed | cells: []}).figures |> Enum.map(& &1.id) == ["capacity", "limits"]
  end

  test "a compared report has hello's p99 and the CPU of a request" do
    figures = Report.figures(Fixture.result())
    assert {"yielding, 10 ms", "hello p99", 9200.0} in figures
    assert {"cowboy h2", "CPU of a request", 20.6} in figures
    refute Enum.any?(figures, &match?({"auto" <> _, _, _}, &1))
  end

  test "text has the tables, a drawing of each cell, and what died" do
    text = text()
    assert text =~ ~r/^cowboy +h2 +71,000 +- +20.6 +20.0/m
    assert text =~ ~r/^inline +740ms +3.7s +20 +4.1s/m
    assert text =~ "thread, 10 ms  died after 3.1 s, signal 11\n"
    assert text =~ ~r/^  hello p99, 0.1 ms to 10 s +▂▂█+$/mu
    assert text =~ ~r/^  utilisation, regular +▄▄···· *$/mu
    assert text =~ ~r/^pool +10 ms +200 +4.0ms +400/m
    assert text =~ "warning: The client was late."
  end

  test "a run is well when all lived, was measured, and counts agree" do
    ok = %{
      Fixture.result()
      | cells: Enum.filter(Fixture.result().cells, &(&1.status == "ok")),
        capacity: [hd(Fixture.result().capacity)]
    }

    assert Load.ok?(ok)
    refute Load.ok?(Fixture.result())
    refute Load.ok?(update_in(ok, [:cells, Access.at(0), :counts_agree?], fn _ -> false end))
  end

  test "hostile reasons stay text in the page" do
    evil = ~s|</script><script>alert(1)</script>|
    result = update_in(Fixture.result().cells, &for(c <- &1, do: %{c | reason: c.reason && evil}))
    refute Tame.ReportFixture.page([section(result)], [{"os", evil}]) =~ "<script>alert"
  end
end
