defmodule Tame.Watch.ViewTest do
  # The full screen without a terminal: keys change the view, a view of a size is lines.
  use ExUnit.Case, async: true

  alias Tame.Property
  alias Tame.Watch.{Layout, View}

  defp facts do
    %{
      node: :app@host,
      otp: "25",
      schedulers: 2,
      schedulers_online: 2,
      dirty_cpu_schedulers: 2,
      dirty_cpu_schedulers_online: 2,
      dirty_io_schedulers: 10,
      began_ns: 0
    }
  end

  defp second(more) do
    Map.merge(
      %{
        at_ms: 4000,
        utilisation: %{normal: 1.0, dirty_cpu: 0.0, dirty_io: 0.0},
        dirty: %{cpu: %{busy: 1, waiting: 0}, io: %{busy: 0, waiting: 0}},
        holders: [],
        neighbour: %{wakes: 20, p50_us: 90.0, p99_us: 1500.0, max_us: 31_000.0},
        long_schedules: [],
        long_left_out: 0,
        monitor: nil,
        held: nil,
        processes: 1000,
        looked_at: nil,
        cost_percent: 0.123
      },
      Map.new(more)
    )
  end

  defp holder(process, function, for_ms),
    do: %{process: process, function: function, kind: :cpu, for_ms: for_ms}

  defp long(nif, from, count, ms),
    do: %{nifs: [nif], from: from, count: count, longest_ms: ms, process: "<0.1.0>"}

  defp view(seconds) do
    Enum.reduce(seconds, View.new("app@host"), &View.second(&2, facts(), &1, []))
  end

  defp keys(view, keys) do
    Enum.reduce(keys, view, fn key, view ->
      key = if is_tuple(key), do: key, else: {:key, key, []}
      %View{} = View.key(view, key)
    end)
  end

  defp text(view, size \\ {120, 40}) do
    view |> Layout.lines(size) |> Enum.map_join("\n", &line/1)
  end

  defp line(cells), do: Enum.map_join(cells, &elem(&1, 0))

  describe "keys" do
    test "q and Ctrl-C quit, Ctrl-L draws anew, others do nothing" do
      view = view([second([])])
      assert View.key(view, {:key, ?q, []}) == :quit
      assert View.key(view, {:key, ?c, [:ctrl]}) == :quit
      assert View.key(view, {:key, ?l, [:ctrl]}) == :redraw

      for event <- [{:key, ?c, []}, {:key, :enter, []}, {:paste, :last, "q"}, {:unknown, "q"}],
          do: assert(View.key(view, event) == view)
    end

    test "p keeps what is shown, and p again shows what came meanwhile" do
      view = view([second(at_ms: 1000)]) |> keys([?p])
      assert text(view) =~ "PAUSED"

      later =
        view
        |> View.second(facts(), second(at_ms: 2000, holders: [holder("late", "m:f/0", 5)]), [])
        |> View.second(facts(), second(at_ms: 3000), [])
        |> View.hosts([])

      assert text(later) == text(view)
      shown = keys(later, [?\s])
      refute text(shown) =~ "PAUSED"
      assert text(shown) =~ "second 3"
      # Nothing of what came is lost.
      assert [%{nif: "m:f/0", process: "late"}] = View.top(shown)
      assert shown.hosts == []
    end

    test "s sorts the callers in three ways, in turn" do
      view =
        view([
          second(
            long_schedules: [
              long("a:a/0", "x:x/0", 1, 30),
              long("b:b/0", "x:x/0", 9, 20),
              long("c:c/0", "x:x/0", 5, 90)
            ]
          )
        ])

      order = fn view -> for row <- View.top(view), do: row.nif end
      assert order.(view) == ["c:c/0", "a:a/0", "b:b/0"]
      assert order.(keys(view, [?s])) == ["b:b/0", "c:c/0", "a:a/0"]
      assert order.(keys(view, [?s, ?s])) == ["a:a/0", "b:b/0", "c:c/0"]
      assert keys(view, [?s, ?s, ?s]) == view
      assert text(keys(view, [?s])) =~ "Callers of NIFs, by count"
    end

    test "up and down select a process, which enter asks" do
      holders = for n <- 1..3, do: holder("<0.#{n}.0>", "m:f/0", 10 - n)
      view = view([second(holders: holders)])
      assert keys(view, [:down]).selected == "<0.1.0>"
      assert keys(view, [:down, :down]).selected == "<0.2.0>"
      assert keys(view, [:down, :down, ?j, ?j, ?j]).selected == "<0.3.0>"
      assert keys(view, [:up]).selected == "<0.3.0>"
      assert keys(view, [:up, ?k]).selected == "<0.2.0>"
      assert keys(view, [:down, :escape]).selected == nil
      assert View.key(view, {:key, :enter, []}) == view

      assert {:ask, "<0.1.0>", asked} = View.key(keys(view, [:down]), {:key, :enter, []})
      assert text(asked) =~ "<0.1.0>: asked"
      told = View.details(asked, "<0.1.0>", [{"memory", "2688"}])
      assert text(told) =~ ~r/memory +2688/
      assert View.details(asked, "<0.9.0>", [{"memory", "1"}]) == asked
      assert keys(told, [:escape]).details == nil

      # Who is gone is selected no more; what was said stays.
      gone = View.second(told, facts(), second([]), [])
      assert gone.selected == nil
      assert text(gone) =~ ~r/memory +2688/
    end

    test "nothing can be selected where nobody is" do
      view = view([second([])])
      assert keys(view, [:down, :up]) == view
    end
  end

  describe "what is counted" do
    test "a caller's slices over all seconds, the longest with its process" do
      row = fn count, ms, process -> %{long("a:a/0", "x:x/0", count, ms) | process: process} end

      view =
        view([
          second(long_schedules: [row.(2, 30, "one")]),
          second(long_schedules: [row.(3, 80, "two")]),
          second(long_schedules: [row.(1, 10, "three")])
        ])

      assert [%{count: 6, longest_ms: 80, process: "two", where: "normal"}] = View.top(view)
    end

    test "a process that holds a scheduler comes first, and once" do
      view =
        view([
          second(
            held: %{process: "<0.5.0>", for_ms: 700},
            holders: [holder("<0.5.0>", "m:f/0", 9000), holder("<0.6.0>", "m:f/0", 9000)]
          )
        ])

      assert [%{process: "<0.5.0>", kind: :normal}, %{process: "<0.6.0>"}] = View.processes(view)
    end

    test "no more than 500 callers are kept, those with the longest slices" do
      long = for n <- 1..700, do: long("m:f/#{n}", "x:x/0", 1, n)
      view = view([second(long_schedules: long)])
      assert length(View.top(view)) == 500
      assert hd(View.top(view)).longest_ms == 700
    end
  end

  describe "a screen" do
    test "has all parts" do
      host = %{
        module: ":my_nif",
        state: "up",
        os_pid: 4711,
        rss_bytes: 50 * 1_048_576,
        waiting: 2,
        restarts: 1
      }

      view =
        [
          second(
            utilisation: %{normal: 15.0, dirty_cpu: 100.0, dirty_io: nil},
            dirty: %{cpu: %{busy: 2, waiting: 3}, io: nil},
            holders: [holder("<0.90.0>", "my_nif:decode/1", 842)],
            long_schedules: [long("my_nif:fast/1", "app:run/0", 19, 83)]
          )
        ]
        |> view()
        |> View.hosts([host])

      text = text(view)
      assert text =~ "app@host  OTP 25, second 4"
      assert text =~ ~r/dirty CPU +█{20} +100 %  2 at work, 3 waiting/u
      assert text =~ ~r/normal +███·{17} +15 %/u
      assert text =~ ~r/dirty I\/O +·{20} +-/u
      assert text =~ ~r/<0.90.0> +my_nif:decode\/1 +dirty CPU +842/
      assert text =~ ~r/my_nif:fast\/1 +app:run\/0 +normal +19 +83/
      assert text =~ ~r/:my_nif +up +4711 +50 +2 +1/
      assert text =~ "q quit"
    end

    test "waits for its first second" do
      assert text(View.new("app@host")) =~ "waiting for its first second"
    end

    test "shares its rows, and says how many it leaves out" do
      holders = for n <- 1..50, do: holder("<0.#{n}.0>", "m:f/0", n)
      long = for n <- 1..50, do: long("m:f/#{n}", "x:x/0", 1, n)
      view = view([second(holders: holders, long_schedules: long)])
      text = text(view, {100, 24})
      assert text =~ ~r/In native code now  \(\d+ more\)/
      assert text =~ ~r/Callers of NIFs, by longest  \(\d+ more\)/
      assert text =~ "<0.50.0>"
      assert text =~ "m:f/50"
    end

    test "shows no control character of a name, nor what is no text" do
      holders = [holder("\e[2J\nevil", "m:'\u202Ef'/0", 5), holder(<<255, "x">>, "m:f/0", 4)]
      text = view([second(holders: holders)]) |> text()
      refute text =~ ~r/[\e\x{202E}]/u
      assert text =~ "?[2J?evil"
      assert String.valid?(text)
    end
  end

  test "whatever is in it, a screen of any size is that many lines, each as wide at most" do
    sizes = :proper_types.integer(0, 130)
    count = :proper_types.integer(0, 60)

    Property.check(
      {sizes, sizes, count, count, :proper_types.list(:proper_types.oneof([?p, ?s, :down, :up]))},
      fn {columns, rows, holders, callers, keys} ->
        view =
          [
            second(
              holders: for(n <- 1..holders//1, do: holder("<0.#{n}.0>", "m:f/0", n)),
              long_schedules: for(n <- 1..callers//1, do: long("m:f/#{n}", "x:x/0", 1, n)),
              held: %{process: "a", for_ms: 1},
              monitor: "somebody"
            )
          ]
          |> view()
          |> keys(keys)

        lines = Layout.lines(view, {columns, rows})
        {columns, rows} = if columns < 1 or rows < 1, do: {80, 24}, else: {columns, rows}

        length(lines) == rows and
          Enum.all?(lines, &(String.length(line(&1)) <= columns)) and
          lines |> List.last() |> line() |> String.starts_with?(String.slice(" q quit", 0, columns))
      end,
      numtests: 200
    )
  end
end
