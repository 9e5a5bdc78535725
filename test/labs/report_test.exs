defmodule Tame.ReportTest do
  use ExUnit.Case, async: true

  alias Tame.Report
  alias Tame.Report.{Figure, Section, Table}

  doctest Tame.Number

  @assets %{css: "p { margin: 0 }", js: "let drawn = 1;"}
  @hostile ~s|</script><img src=x onerror="alert('1')"> & <!-- |

  defp page(sections, system \\ [], opts \\ []) do
    sections
    |> Report.render(system, Keyword.merge([assets: @assets], opts))
    |> IO.iodata_to_binary()
  end

  defp section(fields \\ []), do: struct!(%Section{id: "lab", title: "A lab"}, fields)

  defp table(columns, rows), do: %Table{title: "T", columns: columns, rows: rows}

  # What stands between the script tags of a figure's spec.
  defp embedded_spec(page, id) do
    [_, after_open] = String.split(page, ~s(<script type="application/json" id="#{id}">), parts: 2)
    [json, _] = String.split(after_open, "</script>", parts: 2)
    json
  end

  describe "render/3" do
    test "makes a page that holds its style and script and refuses the network" do
      page = page([section()])

      assert String.starts_with?(page, "<!DOCTYPE html>\n<html lang=\"en\">")
      assert page =~ "<meta charset=\"utf-8\">"
      assert page =~ "width=device-width, initial-scale=1"
      assert page =~ "default-src 'none'"
      assert page =~ @assets.css
      assert page =~ @assets.js
      refute page =~ ~r/(src|href)="[^#]/
    end

    test "says what it was measured on, in the order given" do
      page = page([], [{"Erlang/OTP", "25"}, {:cores, "2"}])
      assert page =~ "<dt>Erlang/OTP</dt><dd>25</dd>"
      assert page =~ ~r/Erlang.*cores/s
    end

    test "has no machine block and no warnings where there are none" do
      page = page([section()])
      refute page =~ "class=\"machine\""
      refute page =~ "class=\"warnings\""
    end

    test "shows every warning once, before the sections" do
      warning = %{id: :machine_busy, text: "Something else was running."}
      page = page([section(warnings: [warning]), section(id: "b", warnings: [warning])])

      assert [before, _rest] = String.split(page, "Something else was running.")
      refute before =~ "<main>"
      assert page =~ "<code>machine_busy</code>"
    end

    test "has a table of contents only for more than one section" do
      figure = %Figure{id: "f", title: "A figure"}
      refute page([section()]) =~ "class=\"contents\""

      page = page([section(figures: [figure]), section(id: "other", title: "Another")])
      assert page =~ ~s(<a href="#lab">A lab</a>)
      assert page =~ ~s(<a href="#lab-f">A figure</a>)
      assert page =~ ~s(<a href="#other">Another</a>)
    end

    test "gives every link a target and every id one owner" do
      figure = %Figure{id: "f", title: "F", spec: %{mark: "bar"}}
      page = page([section(figures: [figure]), section(id: "b", figures: [figure])])
      ids = for [_, id] <- Regex.scan(~r/ id="([^"]*)"/, page), do: id

      targets =
        for [_, id] <- Regex.scan(~r/(?:href="#|aria-labelledby="|data-spec=")([^"]*)/, page),
            do: id

      assert ids == Enum.uniq(ids)
      assert Enum.uniq(targets) -- ids == []
    end

    test "shows a figure as title, chart, caption and table, in this order" do
      figure = %Figure{
        id: "f",
        title: "Title",
        caption: ["Caption"],
        spec: %{mark: "bar"},
        table: table([{"id", :code}], [["row"]])
      }

      assert page([section(figures: [figure])]) =~
               ~r/<h3[^>]*>Title.*data-spec="lab-f-spec".*<figcaption>.*Caption.*<details open>.*<th scope="row" class="code">row/s
    end

    test "leaves the chart out where there is no spec" do
      refute page([section(figures: [%Figure{id: "f", title: "F"}])]) =~ "data-spec"
    end

    test "embeds the spec as it is" do
      figure = %Figure{id: "f", title: "F", spec: %{mark: "bar", data: %{values: [%{us: 1.5}]}}}

      assert page([section(figures: [figure])]) |> embedded_spec("lab-f-spec") ==
               ~s({"data":{"values":[{"us":1.5}]},"mark":"bar"})
    end

    test "shows a section's tables without a chart" do
      page = page([section(tables: [table([{"id", :code}, {"n", :number}], [["a", "1"]])])])
      assert page =~ "<summary>T</summary>"
    end

    test "refuses an unknown option" do
      assert_raise ArgumentError, ~r/titel/, fn -> page([], [], titel: "x") end
    end

    test "refuses assets that would end their own element" do
      assert_raise ArgumentError, ~r{</script}, fn ->
        page([], [], assets: %{@assets | js: "'</SCRIPT>'"})
      end
    end
  end

  describe "render/3 with hostile text" do
    test "escapes it wherever it stands" do
      section =
        section(
          title: @hostile,
          intro: [@hostile],
          facts: [{@hostile, @hostile}],
          words: [{"#000", @hostile, @hostile}],
          warnings: [%{id: :x, text: @hostile}],
          figures: [
            %Figure{
              id: "f",
              title: @hostile,
              caption: [@hostile],
              spec: %{data: %{values: [%{id: @hostile}]}},
              table: %Table{
                title: @hostile,
                columns: [{@hostile, :code}, {@hostile, :number}, {"d", :kind}, {"n", :text}],
                rows: [[@hostile, @hostile, {:dot, "#000", @hostile}, {:note, @hostile}]]
              }
            }
          ]
        )

      page =
        page([section, %{section | id: "b"}], [{@hostile, @hostile}],
          title: @hostile,
          lead: @hostile
        )

      refute page =~ "<img"
      refute page =~ "<!-- "
      # The page's own: two specs of two sections, and the script.
      assert length(String.split(page, "</script>")) == 4
      refute embedded_spec(page, "lab-f-spec") =~ "<"
    end

    test "quotes attribute values" do
      page =
        page([
          section(
            figures: [%Figure{id: "f", title: "F", table: %{table([], []) | title: ~s(" x=")}}]
          )
        ])

      assert page =~ ~s(aria-label="&quot; x=&quot;")
    end

    test "replaces what no page may hold" do
      page = page([section(intro: [<<"bad ", 0xFF, " and ", 0, " end µ">>])])
      assert page =~ "bad \uFFFD and \uFFFD end µ"
      assert String.valid?(page)
    end
  end

  describe "a table" do
    test "aligns numbers at the decimal point and sets thousands apart" do
      page =
        page([
          section(
            tables: [table([{"id", :code}, {"µs", :number}], [["a", "12346"], ["b", "0.042"]])]
          )
        ])

      assert page =~ ~s(<th scope="col" class="number d3">µs</th>)

      assert page =~
               ~s(<td class="number d3"><span class="k">12</span>346<span class="after"></span></td>)

      assert page =~ ~s(<td class="number d3">0<span class="after">.042</span></td>)
    end

    test "shows a missing value as a dash and lets a note take the rest of the row" do
      columns = [{"id", :code}, {"a", :number}, {"b", :number}, {"c", :number}]

      page =
        page([
          section(
            tables: [table(columns, [["x", nil, "1", "2"], ["y", "1", {:note, "failed: why"}]])]
          )
        ])

      assert page =~ ~s(<td class="number">–</td>)
      assert page =~ ~s(<td class="note" colspan="2">failed: why</td>)
    end
  end

  describe "assets/1" do
    @tag :tmp_dir
    test "reads both files", %{tmp_dir: folder} do
      File.write!(Path.join(folder, "page.css"), "css")
      File.write!(Path.join(folder, "page.js"), "js")
      assert Report.assets(folder) == {:ok, %{css: "css", js: "js"}}
    end

    @tag :tmp_dir
    test "says what to run when they are not built", %{tmp_dir: folder} do
      assert {:error, message} = Report.assets(folder)
      assert message =~ folder
      assert [_, tree] = Regex.run(~r/run: make -C (\S+) assets$/, message)
      assert File.read!(Path.join(tree, "Makefile")) =~ ~r/^assets:/m
    end
  end
end
