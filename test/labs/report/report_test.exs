defmodule Tame.ReportTest do
  use ExUnit.Case, async: true

  alias Tame.Report
  alias Tame.Report.{Figure, Finding, Section, Table}

  doctest Tame.Number
  doctest Tame.Report.Words

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

    test "shows a warning beside what it concerns, and those of the machine with it" do
      [machine, lab, figure] = for id <- ~w(busy few coarse)a, do: %{id: id, text: "About #{id}."}
      figures = [%Figure{id: "f", title: "A figure", warnings: [figure]}]

      page =
        page([section(warnings: [lab], figures: figures)], [{"OS", "Debian"}], warnings: [machine])

      assert page =~
               ~r/<h2 id="lab">.*About few\..*<h3 id="lab-f">.*About coarse\..*<h2 id="machine">.*About busy\./s

      assert page =~ "<code>busy</code>"
      assert page =~ ~r/<header>.*href="#machine".*<\/header>/s
    end

    test "begins with the findings in their order, each once, with the way to its section" do
      one =
        section(
          findings: [Finding.new("isolation", "Early.", nil), Finding.new("flood", "Many.", nil)]
        )

      two =
        section(
          id: "other",
          findings: [Finding.new("isolation", ["Late ", {:strong, "<2>"}, "."], %{mark: "bar"})]
        )

      page = page([one, two])

      assert page =~
               ~r/Who starves.*Many\..*What does isolation.*Late <strong>&lt;2&gt;<\/strong>\..*<main>/s

      refute page =~ "Early."
      assert page =~ ~s(data-spec="finding-isolation-spec")
      assert page =~ ~r/id="finding-isolation"><a href="#other">/
      refute page([section()]) =~ "class=\"findings\""
    end

    test "begins a section with its conclusion, and ends it with how it was measured" do
      page =
        page([section(conclusion: ["It is so."], intro: ["By looking."], facts: [{"rounds", "3"}])])

      assert page =~
               ~r/A lab<\/h2>\s*<p class="conclusion">It is so\..*How it was measured.*By looking\./s
    end

    test "shows panels side by side, each with its chart" do
      panel = %{id: "p", title: "One", note: "Of two.", spec: %{mark: "bar"}}

      page =
        page([section(figures: [%Figure{id: "f", title: "F", panels: [panel, %{panel | id: "q"}]}])])

      assert page =~
               ~r/class="panels across-3".*data-spec="lab-f-p-spec".*data-spec="lab-f-q-spec"/s
    end

    test "folds a table but for one that is open, and both are there without JavaScript" do
      table = table([{"id", :code}], [["row"]])
      assert page([section(tables: [table])]) =~ ~r/<details class="fold" open>\s*<summary>T/
      refute page([section(tables: [%{table | open: true}])]) =~ "<details"
    end

    test "names the file that has the figures" do
      assert page([section()], [], json: "my run.json") =~
               ~s(<a href="my%20run.json">my run.json</a>)
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
               ~r/<h3[^>]*>Title.*data-spec="lab-f-spec".*<figcaption>.*Caption.*<details class="fold" open>.*<th scope="row" class="code">row/s
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
          name: @hostile,
          findings: [Finding.new("call", [@hostile, {:strong, @hostile}], nil)],
          conclusion: [@hostile],
          intro: [@hostile],
          facts: [{@hostile, @hostile}],
          words: [{"#000", @hostile, @hostile}],
          warnings: [%{id: :x, text: @hostile}],
          figures: [
            %Figure{
              id: "f",
              title: @hostile,
              caption: [@hostile],
              warnings: [%{id: @hostile, text: @hostile}],
              panels: [%{id: "p", title: @hostile, note: @hostile, spec: nil}],
              spec: %{data: %{values: [%{id: @hostile}]}},
              table: %Table{
                title: @hostile,
                columns: [{@hostile, :code}, {@hostile, :number}, {"d", :kind}, {"n", :text}],
                rows: [
                  {:group, @hostile, @hostile},
                  [@hostile, @hostile, {:dot, "#000", @hostile}, {:note, @hostile}]
                ]
              }
            }
          ]
        )

      page =
        page([section, %{section | id: "b"}], [{@hostile, @hostile}],
          title: @hostile,
          lead: @hostile,
          json: @hostile,
          warnings: [%{id: :x, text: @hostile}]
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

    test "leaves times of several units as they are: their points are not below each other" do
      rows = [["a", "708ms"], ["b", "9.9ms"], ["c", nil], ["d", "1.4s"]]
      page = page([section(tables: [table([{"id", :code}, {"p99", :number}], rows)])])
      for text <- ~w(708ms 9.9ms – 1.4s), do: assert(page =~ ~s(<td class="number">#{text}</td>))
    end

    test "of sentences has its labels with each, for a small screen; one with numbers does not" do
      rows = [["x", "It blocks."]]

      assert page([section(tables: [table([{"f", :code}, {"verdict", :text}], rows)])]) =~
               ~r/<table class="stack">.*<td class="text" data-label="verdict">It blocks/s

      refute page([section(tables: [table([{"f", :code}, {"n", :number}], [["x", "1"]])])]) =~
               "data-label"
    end

    test "with groups has a body and a heading for each" do
      rows = [{:group, "a", "can"}, ["x", "1"], {:group, "b", "cannot"}, ["y", "2"]]
      page = page([section(tables: [table([{"id", :code}, {"n", :number}], rows)])])
      assert [_, _, _] = String.split(page, "<tbody>")

      assert page =~
               ~r/class="group"><th scope="rowgroup" colspan="2"><span class="code">b<\/span> <small>cannot/
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
