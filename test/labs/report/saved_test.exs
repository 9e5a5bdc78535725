defmodule Tame.Report.SavedTest do
  # A report's JSON: what is written is read again, and the page is made from that.
  use ExUnit.Case, async: true

  alias Tame.Report.{Compare, Page, Saved, Section, Words}
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
             "tame.report 1 200 AMD EPYC 7B13 audit contention digest http io isolation latency load reductions\n180 3\n"
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

  test "makes the page: what was measured on what, five findings, the labs in their order" do
    page = page(Fixture.saved())

    assert page =~
             "Latency, reductions, contention, load, HTTP, native I/O, isolation, audit and SHA-3, measured on AMD EPYC 7B13, 2 cores, Debian"

    assert page =~ "on 1 March 2026 at 09:30 UTC, in 3 min."

    assert page =~
             ~r/What does a call cost\?.*What does one large job.*Who starves.*What does a server answer.*What does isolation.*<main>/s

    assert page =~
             ~r/<h2 id="latency">.*<h2 id="reductions">.*<h2 id="contention">.*<h2 id="load">.*<h2 id="audit">/s

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
               "1 are slower, and 1 are faster, 1.25 times or more"

      {worse, "slower", _} = hd(section.words)
      latency = Enum.find(section.figures, &(&1.id == "latency"))

      assert ["port", "p50", "90.0", "180", {:dot, ^worse, "2.00"}] =
               Enum.find(latency.table.rows, &(hd(&1) == "port"))

      assert Enum.map(latency.spec.data.values, & &1.verdict) |> Enum.sort() == ["faster", "slower"]

      reductions = Enum.find(section.figures, &(&1.id == "reductions"))
      assert reductions.spec == nil
      assert hd(reductions.caption) =~ ~r/^None of \d+ figures changed/
    end

    test "say of what is 1.25 times less that it is faster, and of no less" do
      for {then, verdict} <- [{1.2, "alike"}, {1.3, "faster"}, {0.7, "slower"}] do
        section = compared(slower(Fixture.saved(), "port", then))
        latency = Enum.find(section.figures, &(&1.id == "latency"))
        ["port", "p50" | cells] = Enum.find(latency.table.rows, &(hd(&1) == "port"))
        {:dot, colour, _} = List.last(cells)
        assert {^colour, ^verdict, words} = List.keyfind(section.words, verdict, 1)
        assert words =~ "1.25 times" or verdict == "alike"
      end
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
            {"{",
             "expected the JSON that mix tame.report writes beside its page, which it is not from byte 1"},
            {"[1]", "expected an object, got a list of 1"},
            {~s({"tool":"tame.latency","format":1}),
             ~s(tool: expected "tame.report", got "tame.latency")},
            {~s({"format":1}), ~s(tool: expected "tame.report", which is missing)},
            {~s({"tool":"tame.report","format":9}), "format: expected 1, got 9"},
            {~s({"tool":"tame.report","format":1e999}), "which it is not from byte 31 on"}
          ] do
        File.write!(path, text)
        assert {:error, message} = Saved.read(path, Fixture.labs())
        assert message =~ path
        assert message =~ why
      end

      assert {:error, message} = Saved.read(Path.join(folder, "none.json"), Fixture.labs())
      assert message =~ "cannot read " and message =~ "no such file"
    end

    test "has no lab that this version knows", %{tmp_dir: folder} do
      path = Path.join(folder, "old.json")

      for labs <- [%{}, %{"speed" => %{}}] do
        File.write!(path, Fixture.encoded(%{Fixture.decoded() | "labs" => labs}))
        assert {:error, message} = Saved.read(path, Fixture.labs())
        assert message =~ "labs: expected some of latency, "
      end
    end
  end

  # Whatever is taken out of a report or put in the place of something: it is refused with the place, or there is a page.
  describe "a report in which one field is not as it was" do
    # One for each lab, with few elements in its lists; `top` is what of it is looked at.
    defp reports do
      report = few(Fixture.decoded())

      for {lab, index} <- Enum.with_index(Fixture.labs()) do
        top = if index == 0, do: [], else: [lab.name(), "labs"]
        {lab, top, update_in(report["labs"], &Map.take(&1, [lab.name()]))}
      end
    end

    defp few(%{} = object), do: Map.new(object, fn {key, value} -> {key, few(value)} end)

    defp few([_, _, _ | _] = list), do: Enum.map([hd(list), List.last(list)], &few/1)

    defp few(list) when is_list(list), do: Enum.map(list, &few/1)
    defp few(value), do: value

    # From its end; elements of lists by their first and last.
    defp places(report, top) do
      case if(top == [], do: report, else: get_in(report, access(top))) do
        %{} = object -> for {key, value} <- object, do: {key, value}
        [_ | _] = list -> for at <- Enum.uniq([0, length(list) - 1]), do: {at, Enum.at(list, at)}
        _ -> []
      end
      |> Enum.flat_map(fn {key, _} -> [[key | top] | places(report, [key | top])] end)
    end

    defp access(path),
      do: path |> Enum.reverse() |> Enum.map(&if(is_integer(&1), do: Access.at(&1), else: &1))

    defp written(path) do
      path
      |> Enum.reverse()
      |> Enum.map_join(&if(is_integer(&1), do: "[#{&1}]", else: ".#{&1}"))
      |> String.trim_leading(".")
    end

    # It has a page, by itself and beside another, or else the place that the error names.
    defp page_or_place(report, lab, right) do
      case Saved.from_json(report, [lab]) do
        {:ok, saved} ->
          assert %Section{} = lab.section(saved.labs[lab.name()])
          assert %Section{} = Compare.section(right, saved, [lab])
          assert is_list(Page.render(saved, [lab], nil, "x.json", @assets))
          :page

        {:error, line} ->
          refute line =~ "\n"
          assert [place, _] = String.split(line, ": expected ", parts: 2)
          place
      end
    end

    test "without it: the line names it" do
      for {lab, top, report} <- reports() do
        {:ok, right} = Saved.from_json(report, [lab])

        for [key | above] = path <- places(report, top), is_binary(key) do
          {_, without} = pop_in(report, access(path))
          found = page_or_place(without, lab, right)
          # A report may have any of the labs, but for none.
          named = if above == ["labs"], do: "labs", else: written(path)
          assert found in [:page, named], "#{written(path)}: #{inspect(found)}"
          # All that the report itself has is needed.
          if above in [[], ["labs"]], do: assert(found == named)
        end
      end
    end

    defp others(text) when is_binary(text), do: [:null, 7]
    defp others(number) when is_number(number), do: [:null, "x", -1, 0, 1.0e30]
    defp others(list) when is_list(list), do: [:null, "x", []]
    defp others(_), do: ["x", -1, [], %{}]

    test "with null, a text, a number, a list or an object in its place: the line names it" do
      for {lab, top, report} <- reports() do
        {:ok, right} = Saved.from_json(report, [lab])
        places = places(report, top)

        refused =
          for path <- places, other <- others(get_in(report, access(path))) do
            found = report |> put_in(access(path), other) |> page_or_place(lab, right)
            # Or what is below it, which an object should have had.
            assert found == :page or String.starts_with?(found, written(path)),
                   "#{written(path)}: #{inspect(found)}"

            found
          end
          |> Enum.reject(&(&1 == :page))

        assert length(refused) > length(places)
      end
    end

    test "with more in it: that is left alone" do
      more = fn report -> put_in(report["of_tomorrow"], %{"x" => [1]}) end

      for {lab, _, report} <- reports() do
        {:ok, right} = Saved.from_json(report, [lab])
        report = report |> more.() |> update_in(["labs", lab.name()], more)
        report = report |> put_in(["labs", "tomorrow"], 7) |> put_in(["system", "of_tomorrow"], 7)
        assert page_or_place(report, lab, right) == :page
      end
    end
  end
end
