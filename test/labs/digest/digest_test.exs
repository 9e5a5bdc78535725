defmodule Tame.DigestTest do
  # The real library against the real crypto, small and short; and from a result to words and pictures.
  use ExUnit.Case, async: true

  alias Tame.Digest
  alias Tame.Digest.{Calls, Format, Report, Section}
  alias Tame.DigestFixture, as: Fixture
  alias Tame.Report.Words

  defp section(result \\ Fixture.result()), do: Section.from_result(result)
  defp figure(section, id), do: Enum.find(section.figures, &(&1.id == id))
  defp said(section), do: Enum.map_join(section.conclusion, " ", &Words.plain/1)

  test "measures each way with each size, and under load" do
    assert Digest.here?()
    result = Digest.measure(sizes: [1, 100_000], load_ms: 200, seed: 3)

    assert for(row <- result.calls, do: {row.bytes, row.way}) ==
             for(bytes <- [1, 100_000], way <- ["crypto", "tame_sha3", "kt128"], do: {bytes, way})

    assert Enum.all?(result.calls, fn %{us: us, spread_us: [low, high]} ->
             0 < low and low <= us and us <= high
           end)

    [nobody | ways] = result.load
    assert {nobody.way, nobody.mb_per_s} == {"nobody", 0.0}
    assert Enum.map(ways, & &1.way) == ["crypto", "tame_sha3", "hash_many", "kt128"]
    assert Enum.all?(ways, &(&1.mb_per_s > 0 and &1.max_us >= &1.p50_us))
    assert result.implementation in ["portable", "avx2", "avx512"]

    # What is saved has the shape that is read again.
    json = Tame.JSON.encode(Report.to_save(result)) |> IO.iodata_to_binary()
    {:ok, saved} = :tame_json.decode(json)
    assert Tame.Report.Shape.check(saved, Report.shape()) == :ok
  end

  test "a larger input takes longer" do
    us = fn bytes ->
      for %{way: way, us: us} <- Calls.measure(bytes, 3, 1), into: %{}, do: {way, us}
    end

    # A hundred times as long and more, where nobody takes the core of the small one meanwhile.
    longer? = fn ->
      {small, large} = {us.(1000), us.(1_000_000)}
      Enum.all?(["crypto", "tame_sha3"], &(large[&1] > 50 * small[&1]))
    end

    assert Enum.any?(1..5, fn _ -> longer?.() end)
  end

  test "begins with how fast it is, and with what it does to a neighbour" do
    said = section() |> said() |> String.replace("\u00A0", " ")
    assert said =~ "One SHA3-256 of 4 MiB is 1.2 × as fast as OpenSSL's, one of 64 B 0.98 ×."
    assert said =~ "takes 4 MiB 13 × as fast."
    assert said =~ "230 µs late with tame_sha3, 1.2 ms with crypto and 210 µs beside nobody"
  end

  test "draws each way by size, and each way's delays" do
    values = figure(section(), "calls").spec.data.values
    assert %{way: "kt128", bytes: 4_194_304, us: 701.0, mb: mb} = List.last(values)
    assert_in_delta mb, 5983, 1
    delays = figure(section(), "load").spec.data.values
    assert Enum.count(delays) == 15
    assert %{way: "crypto, 871 MB/s", delay: "p99", us: 1210.0, mb: 871.0} in delays
  end

  test "the tables have every figure" do
    %{columns: columns, rows: [short, _]} = figure(section(), "calls").table
    row = columns |> Enum.map(&elem(&1, 0)) |> Enum.zip(short)
    assert {"crypto ÷ tame_sha3", "0.981"} in row
    assert {"spread %", "2"} in row
    assert ["kt128", "10907", "0.113", "0.189", "0.200"] in figure(section(), "load").table.rows
    text = Fixture.result() |> Format.text() |> IO.iodata_to_binary()
    assert text =~ ~r/^tame_sha3 +1025 +0.172 +0.230 +0.248$/m
  end

  test "a saved result that lacks a way, or all of them, is a section all the same" do
    lacks = update_in(Fixture.result().calls, &Enum.reject(&1, fn row -> row.way == "crypto" end))
    assert [["Beside four" <> _ | _]] = section(lacks).conclusion
    assert [nil, nil] = for(row <- figure(section(lacks), "calls").table.rows, do: Enum.at(row, 5))
    empty = %{Fixture.result() | calls: [], load: []}
    assert section(empty).conclusion == []
    assert figure(section(empty), "calls").spec == nil
  end

  test "two runs are compared by every time" do
    figures = Report.figures(Fixture.result())
    assert {"tame_sha3, 64 B", "median", 0.52} in figures
    assert {"a neighbour of crypto", "p99", 1210.0} in figures
  end
end
