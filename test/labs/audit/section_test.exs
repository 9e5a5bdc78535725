defmodule Tame.Audit.SectionTest do
  # From a result to the report's words, table and picture, and to text.
  use ExUnit.Case, async: true

  alias Tame.Audit.{Format, Section}
  alias Tame.AuditFixture, as: Fixture

  defp figure(id), do: Enum.find(Section.from_result(Fixture.result()).figures, &(&1.id == id))

  test "has a line for each function on log axes, with the budget's" do
    [lines, dots, budget] = figure("slices").spec.layer
    assert lines.encoding.x.scale.type == "log" and lines.encoding.y.scale.type == "log"
    assert lines.data == dots.data
    assert [%{us: 1000}] = budget.data.values
    assert lines.encoding.color.scale.domain == ["alpha:whole/1 on binary", "alpha:cut/1 on binary"]
    assert ["beta:bad/1", {:note, "crashes: " <> _}] = List.last(figure("slices").table.rows)
  end

  test "says each verdict in words" do
    [_, whole, cut, bad] = Section.from_result(Fixture.result()).intro
    assert whole =~ "alpha:whole/1 on binary: blocks above 500,000 bytes"
    assert cut =~ "well-behaved: no slice above 120 µs"
    assert bad =~ "ended the VM with SIGSEGV"
  end

  test "has a row for each NIF, to be filtered by how it is declared" do
    table = figure("nifs").table
    assert table.filter == "declared"

    assert [
             "alpha",
             "b/2",
             "dirty CPU",
             "yields, has an upgrade callback, resources (with destructors)"
           ] in table.rows

    html = table |> Tame.Report.TableView.render() |> IO.iodata_to_binary()
    assert html =~ ~s(<table data-filter="2">)
  end

  test "nothing called is a section without a picture" do
    section = Section.from_result(%{Fixture.result() | targets: []})
    assert Enum.map(section.figures, & &1.id) == ["nifs"]
  end

  test "the text shows libraries, what does not match the VM, points and verdicts" do
    text = Fixture.result() |> Format.text() |> IO.iodata_to_binary()
    assert text =~ ~r/^alpha  \/lib\/alpha.so$/m
    assert text =~ "dirty CPU (1): b/2"
    assert text =~ "grows with bytes^1.00 (R² 1.00, 6 sizes)"
    assert text =~ "2 libraries; functions: 2 normal, 2 dirty CPU"

    odd = %{Fixture.library("gamma", "g.so") | bound: {:ok, [{"a", 1}, {"c", 0}]}}
    text = %{Fixture.result() | libraries: [odd]} |> Format.text() |> IO.iodata_to_binary()
    assert text =~ "in the library, not bound: b/2"
    assert text =~ "bound, not in the library: c/0"
  end
end
