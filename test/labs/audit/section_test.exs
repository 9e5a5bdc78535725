defmodule Tame.Audit.SectionTest do
  # From a result to the report's words, table and picture, and to text.
  use ExUnit.Case, async: true

  alias Tame.Audit.{Format, Section}
  alias Tame.AuditFixture, as: Fixture
  alias Tame.ReportFixture

  # As it is read from a saved report.
  defp section(result \\ Fixture.result()) do
    result
    |> Map.put(:warnings, [])
    |> ReportFixture.saved_lab(Tame.Audit.Report)
    |> Section.from_result()
  end

  defp figure(id), do: Enum.find(section().figures, &(&1.id == id))

  test "has a line for each function on log axes, with the budget's" do
    [lines, dots, budget] = figure("slices").spec.layer
    assert lines.encoding.x.scale.type == "log" and lines.encoding.y.scale.type == "log"
    assert lines.data == dots.data
    assert [%{us: 1000}] = budget.data.values
    assert lines.encoding.color.scale.domain == ["alpha:whole/1 on binary", "alpha:cut/1 on binary"]
    assert ["beta:bad/1", {:note, "crashes: " <> _}] = List.last(figure("slices").table.rows)
  end

  test "says each verdict in words, and begins with what was found" do
    table = figure("verdicts").table
    assert [["alpha:whole/1 on binary", whole, advice], [_, cut, _], [_, bad, _]] = table.rows
    assert whole =~ "blocks above 500,000 bytes"
    assert advice =~ "alpha:whole/1"
    assert cut =~ "well-behaved: no slice above 120 µs"
    assert bad =~ "ended the VM with SIGSEGV"

    [found, called] = section().conclusion

    assert Tame.Report.Words.plain(found) =~
             "4 NIFs were found in 2 libraries. 0 of them are declared normal"

    assert called == "Well-behaved: 1 of 3 functions that were called."
  end

  test "has NIFs by library, what it can do said once, to be filtered by how they are declared" do
    table = figure("nifs").table
    assert table.filter == "declared"

    assert [
             {:group, "alpha",
              "NIF 2.16, yields, has an upgrade callback, resources (with destructors), /lib/alpha.so"},
             ["normal", "1", "a/1"],
             ["dirty CPU", "1", "b/2"],
             {:group, "beta", _} | _
           ] = table.rows

    html = table |> Tame.Report.TableView.render() |> IO.iodata_to_binary()
    assert html =~ ~s(<table data-filter="0">)
    assert length(String.split(html, "has an upgrade callback")) == 3
  end

  test "a library that cannot yield is counted by its functions that are declared normal" do
    library = Fixture.library("gamma", "g.so")
    stiff = %{library | can: Keyword.put(library.can, :yields, false)}
    [found | _] = section(%{Fixture.result() | libraries: [stiff]}).conclusion

    assert Tame.Report.Words.plain(found) =~
             "1 of them are declared normal in a library that cannot yield"
  end

  test "nothing called is a section without a picture" do
    section = section(%{Fixture.result() | targets: []})
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
