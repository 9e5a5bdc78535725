defmodule Tame.Isolation.SectionTest do
  # From a result to words: text, JSON, sentences, pictures.
  use ExUnit.Case, async: true

  alias Tame.Isolation
  alias Tame.Isolation.{Format, Memory, Report, Section}
  alias Tame.IsolationFixture, as: Fixture
  alias Tame.Report.Words

  doctest Memory

  defp section(result \\ Fixture.result()), do: Section.from_result(result)
  defp figure(section, id), do: Enum.find(section.figures, &(&1.id == id))
  defp text(result), do: result |> Format.text() |> IO.iodata_to_binary()
  defp conclusion(section), do: Enum.map_join(section.conclusion, " ", &Words.plain/1)

  test "begins with what isolation protects from, what it costs and what a host holds" do
    said = section() |> conclusion() |> String.replace("\u00A0", " ")
    assert said =~ "0.6 µs with 16 B, 0.2 times a dirty NIF"
    assert said =~ "340 µs with 1 MiB, "
    # The smaller of the two in the middle.
    assert said =~ "answers again after 12 ms"
    assert said =~ "After 100,000 calls a host holds 2.7 MB"
    assert said =~ "the VM's memory stayed the same and the host's memory stayed the same"
    assert [%{id: "isolation"}] = section().findings
  end

  test "draws p50 and p99 of each way by size, and says what was not measured" do
    calls = figure(section(), "calls")
    points = for v <- calls.spec.data.values, do: {v.method, v.quantile, v.bytes, v.us}
    assert {"isolated", "p50", 16, 0.6} in points
    assert {"nif_dirty_cpu", "p99", 1_048_576, 10.0} in points
    refute Enum.any?(points, &match?({"port", _, 1_048_576, _}, &1))
    assert Enum.join(calls.caption) =~ "port with 1\u00A0MiB, failed: tame_echo ended"
    assert calls.spec.encoding.x.scale.type == "log"
    assert calls.spec.encoding.y.scale.type == "log"
  end

  test "the table of sizes has every figure of a way, and two ratios" do
    %{columns: columns, rows: [small, _, large]} = figure(section(), "calls").table
    row = columns |> Enum.map(&elem(&1, 0)) |> Enum.zip(small)
    assert {"isolated p50", "0.600"} in row
    assert {"÷ nif_dirty_cpu", "0.200"} in row
    assert {"port ÷ isolated", "75.0"} in row
    assert length(large) == length(columns)
    assert List.last(large) == nil
  end

  test "draws each crash on one scale, with its two moments" do
    crashes = figure(section(), "crashes")
    assert [%{title: "Crash 1"} = first, second] = crashes.panels
    assert first.spec.encoding.x.scale.domain == second.spec.encoding.x.scale.domain
    assert [-20, last] = first.spec.encoding.x.scale.domain
    assert last > 50

    assert [%{at_ms: 1.5, what: "raised"}, %{at_ms: 12.0, what: "answered"}] =
             first.spec.layer |> List.last() |> get_in([:data, :values])

    assert [["1", "sigsegv", "1.50", "12.0", "1", "900", "900"], _] = crashes.table.rows
    assert Enum.join(crashes.caption) =~ "in the middle, 30\u00A0ms at most"
  end

  test "memory has what VM and host hold, from no call on" do
    values = figure(section(), "memory").spec.data.values
    assert length(values) == 33
    assert %{calls: 0, who: "host, held", mb: 2.7} in values
  end

  test "warnings stand beside what they concern" do
    assert section().warnings == []
    assert [%{id: :too_few_samples}] = figure(section(), "calls").warnings
    busy = %{Fixture.result() | warnings: [%{id: :machine_busy, text: "Busy."}]}
    assert [%{id: :machine_busy}] = section(busy).warnings
  end

  test "what was not measured is a section all the same, and says why" do
    failed = Fixture.failed("no host")
    assert section(failed).findings == []
    assert figure(section(failed), "calls").spec == nil

    for id <- ~w(crashes memory) do
      assert figure(section(failed), id).caption |> Enum.join() =~ "no host"
    end

    refute Isolation.ok?(failed)
    assert text(failed) =~ "crashes  failed: no host"
    assert text(failed) =~ "isolated, 16 bytes  failed: no host"
    assert Report.figures(failed) == []
  end

  test "a compared report has the calls by size and the time to the next answer" do
    figures = Report.figures(Fixture.result())
    assert {"isolated, 16 B", "p50", 0.6} in figures
    assert {"after a crash", "next answer", 12_000.0} in figures
    refute Enum.any?(figures, &match?({"port, 1048576 B", _, _}, &1))
  end

  test "text has the three tables" do
    text = text(Fixture.result())

    assert text =~
             ~r/^ +16 B +0\.600 +20 +9\.00 +3\.00 +20 +8\.00 +45\.0 +20 +70\.0 +0\.200 +75\.0$/m

    assert text =~ ~r/^ +2 +sigsegv +2\.50 +30\.0 +1 +900 +900$/m
    assert text =~ ~r/^100000 +9\.50 +18\.8 +48\.0 +2\.70 +14575 +55$/m
    assert text =~ "median: raised after 1.50 ms, next answer after 12.0 ms"
    assert text =~ "warning: Few calls."
  end

  test "JSON has a format, and all that the section needs" do
    {:ok, json} = Fixture.result() |> Format.json() |> IO.iodata_to_binary() |> :tame_json.decode()
    assert %{"tool" => "tame.isolation", "format" => 1, "seed" => 7} = json
    assert [%{"method" => "isolated", "bytes" => 16, "p50_spread_us" => [_, _]} | _] = json["calls"]
    assert [%{"calls" => [[-20, 900] | _], "answered_ms" => 12.0}, _] = json["crashes"]["crashes"]
    assert [%{"calls" => 0, "us_per_call" => :null} | _] = json["memory"]["rows"]
  end

  describe "warnings/1" do
    defp warned(result), do: for(warning <- Isolation.warnings(result), do: warning.id)

    defp growing(key, by) do
      rows = for n <- 0..10, do: Map.update!(Fixture.memory(n * 1000), key, &(&1 + n * by))
      put_in(Fixture.result().memory.rows, rows)
    end

    test "of a result with nothing to say are none" do
      assert warned(Fixture.result()) == []
    end

    test "tell of memory that grew in the second half, beyond what an allocator takes at once" do
      assert warned(growing(:host_bytes, 1_000_000)) == [:memory_grew]
      assert warned(growing(:vm_bytes, 1_000_000)) == [:memory_grew]
      assert warned(growing(:host_bytes, 10_000)) == []
    end

    test "tell of a crash that was something else, and of few calls" do
      other = put_in(Fixture.result(), [:crashes, :crashes, Access.at(0), :error], "deadline")
      assert warned(other) == [:other_error]
      few = update_in(Fixture.result().calls, &for(row <- &1, do: %{row | count: 10}))
      assert :too_few_samples in warned(few)
    end
  end

  test "hostile reasons stay text in the page" do
    evil = ~s|</script><script>alert(1)</script>|

    page = Tame.ReportFixture.page([section(Fixture.failed(evil))], [{"os", evil}])
    refute page =~ "<script>alert"
  end
end
