defmodule Tame.NativeIO.Section do
  @moduledoc "Native I/O in the report, from its result. Pure."

  alias Tame.{NativeIO, Number, Stats}
  alias Tame.Report.{Chart, Colours, Figure, Section, Table, Words}

  @driver Colours.hex(:amber)
  @nif Colours.hex(:blue)

  # What each is made of.
  @kinds %{
    "socket_tcp" => "driver",
    "socket_otp" => "NIF",
    "socket_tame_tcp" => "NIF",
    "nng_nif" => "NIF",
    "nng_driver" => "driver"
  }

  @colours [{"driver", @driver}, {"NIF", @nif}]

  @placements [
    {"driver_inline", "in control"},
    {"driver_async", "by driver_async"},
    {"driver_dirty", "outside"}
  ]

  @doc "The section, from a result of `Tame.NativeIO`."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    %Section{
      id: "io",
      name: "Native I/O",
      title: "Native I/O: events by a NIF and by a driver",
      conclusion: conclusion(result),
      warnings: Section.warnings(result, :but, []),
      intro: [
        "What comes from outside wakes native code in two ways: a driver is called with its descriptor, a NIF has the VM send a message. TCP goes to " <>
          "a program and back: by gen_tcp, which is OTP's driver and frames messages itself; by OTP's module socket; and by tame_tcp, on " <>
          "tame/fd.h, which both receive what is there and then the rest of a message. nng is one library built both ways: on tame/fd.h, and on " <>
          "tame/driver.h; a message goes from one socket to another in the VM.",
        "A driver that computes in its callbacks holds a scheduler and its port. tame/driver.h runs callbacks outside, on threads of " <>
          "the driver's; the VM's own driver_async has one thread for all drivers."
      ],
      facts: [
        {"round trips", "#{Number.grouped(result.iterations)} of each in #{result.rounds} rounds"},
        {"order of turns", "shuffled, seed #{result.seed}"}
      ],
      words: [
        {@driver, "driver", "called by the VM when its descriptor is ready"},
        {@nif, "NIF", "has a process told when its descriptor is ready"}
      ],
      figures: [trips_figure(result.trips), cells_figure(result.cells)]
    }
  end

  # ---- conclusions ----

  defp conclusion(result) do
    sizes = result.trips |> Enum.map(& &1.bytes) |> Enum.uniq()

    Enum.flat_map([{"nng_driver", "nng_nif"}, {"socket_tcp", "socket_tame_tcp"}], fn {driver, nif} ->
      times =
        for bytes <- sizes,
            of_driver = trip(result.trips, driver, bytes),
            of_nif = trip(result.trips, nif, bytes),
            do: compared(of_driver, of_nif, bytes)

      if times == [],
        do: [],
        else: [
          [
            "A round trip by #{driver} takes ",
            {:strong, Words.list(times)},
            " as long as by #{nif}."
          ]
        ]
    end) ++ floods(NativeIO.before_after(result.cells))
  end

  defp floods(nil), do: []

  defp floods(times) do
    [
      [
        "Beside a driver that computes in control, a neighbour wakes ",
        {:strong, Words.times(times)},
        " as late at p99 as beside one that runs the same jobs outside."
      ]
    ]
  end

  # What lies within the noise of the rounds is no difference, however large it looks.
  defp compared(a, b, bytes) do
    noise =
      if Stats.agree?({a.p50_us, a.p50_spread_us}, {b.p50_us, b.p50_spread_us}),
        do: ", within the noise of the rounds",
        else: ""

    "#{Words.times(a.p50_us / b.p50_us)} (#{size(bytes)}#{noise})"
  end

  defp trip(trips, method, bytes) do
    Enum.find(
      trips,
      &match?(%{method: ^method, bytes: ^bytes, status: "ok", p50_us: us} when us > 0, &1)
    )
  end

  # Without what Number.bytes/1 says in full.
  defp size(bytes), do: bytes |> Number.bytes() |> String.split(" (") |> hd()

  # ---- round trips ----

  defp trips_figure(trips) do
    measured = Enum.filter(trips, &(&1.status == "ok"))

    panels =
      for {bytes, rows} <- measured |> Enum.group_by(& &1.bytes) |> Enum.sort() do
        %{
          id: "io-trips-#{bytes}",
          title: "a message of #{size(bytes)}",
          note: "",
          spec: trips_chart(rows)
        }
      end

    %Figure{
      id: "io-trips",
      title: "Round trips, p50",
      caption:
        for(
          t <- Enum.uniq_by(trips, & &1.method),
          t.reason,
          do: "Not measured: #{t.method}, #{t.reason}."
        ),
      panels: panels,
      columns: 2,
      table: trips(trips)
    }
  end

  defp trips_chart(rows) do
    values =
      for row <- rows do
        %{
          method: row.method,
          amount: row.p50_us,
          kind: @kinds[row.method],
          text: Words.time(row.p50_us)
        }
      end

    Chart.amounts("p50 of a round trip, by method, in µs", "method", values,
      colours: @colours,
      tooltip: [%{field: "method", title: "method"}, Chart.number("amount", "p50, µs")]
    )
  end

  @doc "Every method and size, with what was not measured."
  @spec trips([map()]) :: Table.t()
  def trips(trips) do
    %Table{
      title: "Round trips, in µs",
      columns: [
        {"method", :code},
        {"made as", :text},
        {"bytes", :number},
        {"p50", :number},
        {"p50 of the rounds, least", :number},
        {"greatest", :number},
        {"p99", :number}
      ],
      rows:
        for t <- trips do
          head = [t.method, @kinds[t.method], Number.grouped(t.bytes)]

          if t.status == "ok" do
            [least, greatest] = t.p50_spread_us
            head ++ Enum.map([t.p50_us, least, greatest, t.p99_us], &Number.short/1)
          else
            head ++ [{:note, t.reason || t.status}]
          end
        end
    }
  end

  # ---- drivers under a flood ----

  defp cells_figure(cells) do
    measured = Enum.filter(cells, &(&1.status == "ok"))

    %Figure{
      id: "io-drivers",
      title: "How late a neighbour wakes beside a driver that computes, p99",
      caption: [
        "Jobs of 10 ms in one driver, ten processes for each scheduler; a neighbour sleeps and says how late it woke."
        | for(c <- cells, c.reason, do: "Not measured: #{c.placement}, #{c.reason}.")
      ],
      spec: if(measured != [], do: cells_chart(measured)),
      table: cells(cells)
    }
  end

  defp cells_chart(cells) do
    values =
      for cell <- cells do
        %{
          placement: name(cell.placement),
          amount: cell.neighbour_p99_us / 1000,
          kind: "driver",
          text: Words.time(cell.neighbour_p99_us)
        }
      end

    Chart.amounts(
      "p99 of a neighbour's wake-ups, by where a driver runs its jobs, in ms",
      "placement",
      values,
      colours: @colours,
      tooltip: [%{field: "placement", title: "jobs run"}, Chart.number("amount", "p99, ms")]
    )
  end

  @doc "Every placement, with what was not measured."
  @spec cells([map()]) :: Table.t()
  def cells(cells) do
    %Table{
      title: "A driver's jobs of 10 ms, and how late neighbours wake",
      columns: [
        {"placement", :code},
        {"jobs run", :text},
        {"jobs", :number},
        {"wall ms", :number},
        {"p50 ms", :number},
        {"p99 ms", :number},
        {"max ms", :number}
      ],
      rows:
        for c <- cells do
          head = [c.placement, name(c.placement)]

          if c.status == "ok" do
            times = for key <- ~w(p50 p99 max)a, do: c[:"neighbour_#{key}_us"] / 1000
            head ++ Enum.map([c.finished, c.wall_ms | times], &Number.short/1)
          else
            head ++ [{:note, c.reason || c.status}]
          end
        end
    }
  end

  defp name(placement) do
    Enum.find_value(@placements, placement, fn {id, name} -> id == placement && name end)
  end
end
