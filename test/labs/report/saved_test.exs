defmodule Tame.Report.SavedTest do
  # A report's JSON: what is written is read again, and the page is made from that.
  use ExUnit.Case, async: true

  alias Tame.Report.{Compare, Page, Saved, Words}
  alias Tame.ReportFixture, as: Fixture

  doctest Tame.SystemInfo, only: [from_map: 1, short: 1]

  @assets %{css: "", js: ""}

  defp page(saved, old \\ nil) do
    saved |> Page.render(Fixture.labs(), old, "x.json", @assets) |> IO.iodata_to_binary()
  end

  defp compared(old), do: Compare.section(Fixture.saved(), old, Fixture.labs())

  # What one method took, times this.
  defp slower(saved, id, factor) do
    update_in(saved.labs["latency"].methods, fn methods ->
      for method <- methods do
        if method.id == id, do: %{method | p50_us: method.p50_us * factor}, else: method
      end
    end)
  end

  test "any JSON reader can read it, and finds what was measured on what" do
    script = """
    const r = JSON.parse(require("fs").readFileSync(0, "utf8"));
    console.log(r.tool, r.format, r.took_s, r.system.cpu, Object.keys(r.labs).join(" "));
    console.log(r.labs.latency.methods.find((m) => m.id == "port").p50_us, r.labs.audit.targets.length);
    """

    path = Path.join(System.tmp_dir!(), "tame_report_#{System.unique_integer([:positive])}.json")
    on_exit(fn -> File.rm(path) end)
    File.write!(path, Fixture.json())
    {said, 0} = System.cmd("sh", ["-c", "node -e '#{script}' < #{path}"])

    assert said ==
             "tame.report 1 200 AMD EPYC 7B13 audit contention isolation latency reductions\n180 3\n"
  end

  test "has the facts of the machine in the order in which they are shown" do
    assert [{"tame", _}, {"command", "mix tame.report"}, {"Erlang/OTP", "25"} | _] =
             Tame.SystemInfo.lines(Fixture.saved().system)

    assert {"CPU quota", "none"} in Tame.SystemInfo.lines(Fixture.saved().system)
  end

  test "has a warning of the machine once, and a lab's own with the lab" do
    saved = Fixture.saved()
    assert [%{id: "machine_busy", text: text}] = saved.warnings
    refute text =~ "Before: "
    assert [%{id: "too_few_wake_ups"}] = saved.labs["reductions"].warnings
  end

  test "makes the page: what was measured on what, four findings, the labs in their order" do
    page = page(Fixture.saved())

    assert page =~
             "Latency, reductions, contention, isolation and audit, measured on AMD EPYC 7B13, 2 cores, Debian"

    assert page =~ "on 1 March 2026 at 09:30 UTC, in 3 min."

    assert page =~
             ~r/What does a call cost\?.*What does one large job.*Who starves.*What does isolation.*<main>/s

    assert page =~
             ~r/<h2 id="latency">.*<h2 id="reductions">.*<h2 id="contention">.*<h2 id="audit">/s

    refute page =~ ~s(id="compare")
  end

  test "makes a page of those labs that were measured" do
    saved = update_in(Fixture.saved().labs, &Map.take(&1, ["reductions"]))
    page = page(saved)
    assert page =~ "Reductions, measured on"
    assert page =~ "What does one large job"
    refute page =~ "What does a call cost?"
    refute page =~ ~s(id="latency")
  end

  describe "two reports" do
    test "say what changed, with ratios, and what is alike" do
      section = compared(Fixture.saved() |> slower("port", 0.5) |> slower("nif_normal", 2))

      assert Words.plain(hd(section.conclusion)) =~
               "1 are slower by a quarter or more, and 1 are faster"

      {worse, "slower", _} = hd(section.words)
      latency = Enum.find(section.figures, &(&1.id == "latency"))

      assert ["port", "p50", "90.0", "180", {:dot, ^worse, "2.00"}] =
               Enum.find(latency.table.rows, &(hd(&1) == "port"))

      assert Enum.map(latency.spec.data.values, & &1.verdict) |> Enum.sort() == ["faster", "slower"]

      reductions = Enum.find(section.figures, &(&1.id == "reductions"))
      assert reductions.spec == nil
      assert hd(reductions.caption) =~ ~r/^None of \d+ figures changed/
    end

    test "say what differs between the machines" do
      assert [%{id: "machine", table: table} | _] = compared(Fixture.saved(otp: "27")).figures
      assert table.rows == [["Erlang/OTP", "27", "25"]]
      assert [%{id: "machine", table: nil} | _] = compared(Fixture.saved()).figures
    end

    test "compare the labs that both have" do
      old = update_in(Fixture.saved().labs, &Map.take(&1, ["audit"]))
      assert Enum.map(compared(old).figures, & &1.id) == ["machine", "audit"]
      none = %{old | labs: %{}}
      assert compared(none).conclusion == ["The two runs have no figure in common."]
    end

    test "stand before the labs in the page" do
      assert page(Fixture.saved(), Fixture.saved(otp: "27")) =~
               ~r/<h2 id="compare">.*<h2 id="latency">/s
    end
  end

  describe "a file that is no report" do
    @describetag :tmp_dir

    test "is named with what is wrong", %{tmp_dir: folder} do
      path = Path.join(folder, "old.json")

      for {text, why} <- [
            {"{", "expected JSON, which it is not from byte 1 on"},
            {"[1]", "expected the JSON that mix tame.report writes"},
            {~s({"tool":"tame.latency","format":1,"labs":{}}),
             "expected the JSON that mix tame.report"},
            {~s({"tool":"tame.report","format":9,"labs":{}}),
             "expected a report of format 1, got format 9"}
          ] do
        File.write!(path, text)
        assert {:error, message} = Saved.read(path)
        assert message =~ path
        assert message =~ why
      end

      assert {:error, message} = Saved.read(Path.join(folder, "none.json"))
      assert message =~ "cannot read " and message =~ "no such file"
    end
  end
end
