defmodule Tame.NativeIOTest do
  # Not async: schedulers are flooded, and times are looked at.
  use ExUnit.Case

  alias Tame.Latency.Methods
  alias Tame.NativeIO
  alias Tame.NativeIO.{Report, Section}
  alias Tame.NativeIOFixture, as: Fixture
  alias Tame.Report.Words
  alias Tame.TreeLibrary

  doctest Tame.NativeIO

  defp section(result \\ Fixture.result()), do: Section.from_result(result)

  defp plain(rich), do: rich |> Words.plain() |> String.replace("\u00A0", " ")

  test "measures what is here, and says what is not" do
    {:ok, plan} = NativeIO.prepare(iterations: 50, rounds: 2, seed: 3)
    result = NativeIO.run(plan)
    assert NativeIO.ok?(result)
    assert length(result.trips) == 2 * 5

    for trip <- result.trips do
      case trip do
        %{method: method, status: "ok"} ->
          assert {method, trip.p50_us > 1} == {method, true}

        %{status: "skipped", reason: reason} ->
          assert reason =~ "run MIX_ENV=prod mix compile in libraries/"
      end
    end

    # OTP's own are everywhere.
    ok = for %{method: method, status: "ok"} <- result.trips, do: method
    assert ["socket_otp", "socket_tcp"] -- ok == []
    assert NativeIO.before_after(result.cells) > 2

    json = Report.to_save(result) |> Tame.JSON.encode() |> IO.iodata_to_binary()
    {:ok, saved} = :tame_json.decode(json)
    assert Tame.Report.Shape.check(saved, Report.shape()) == :ok
    assert IO.iodata_to_binary(Report.text(result)) =~ ~r/^driver_dirty +outside +\d/m
  end

  test "says how a driver's round trip compares with a NIF's, and what a driver that computes does" do
    assert Enum.map(section().conclusion, &plain/1) == [
             "A round trip by nng_driver takes 1.5 × (64 B) and 3 × (64 KiB) as long as by nng_nif.",
             "Beside a driver that computes in control, a neighbour wakes 35 × as late at p99 as beside one that runs the same jobs outside."
           ]
  end

  test "says where the rounds lie further apart than the methods" do
    wide = fn trip -> if trip.p50_us, do: %{trip | p50_spread_us: [1.0, 200.0]}, else: trip end
    [first | _] = section(Map.update!(Fixture.result(), :trips, &Enum.map(&1, wide))).conclusion

    assert plain(first) ==
             "A round trip by nng_driver takes 1.5 × (64 B, within the noise of the rounds) and 3 × (64 KiB, within the noise of the rounds) as long as by nng_nif."
  end

  test "draws a panel for each size, and names what was not measured" do
    [trips, cells] = section().figures
    assert Enum.map(trips.panels, & &1.title) == ["a message of 64 B", "a message of 64 KiB"]
    assert trips.caption == ["Not measured: socket_tame_tcp, there is no tame_tcp here."]

    assert List.last(trips.table.rows) == [
             "socket_tame_tcp",
             "NIF",
             "64",
             {:note, "there is no tame_tcp here"}
           ]

    assert "Not measured: driver_async, the node ended." in cells.caption
    assert length(cells.spec.data.values) == 2
  end

  test "says nothing of what it has not" do
    none = section(%{Fixture.result() | trips: [], cells: []})
    assert none.conclusion == []
    assert Enum.map(none.figures, &{&1.spec, &1.panels}) == [{nil, []}, {nil, []}]
    assert NativeIO.ok?(Fixture.result()) == false
  end

  test "the latency lab knows the methods by name, and measures them only when they are named" do
    names = ~w(socket_otp socket_tame_tcp nng_nif nng_driver)
    assert {:ok, methods} = Methods.fetch(names)
    assert methods == Methods.native_io()
    assert Enum.filter(Methods.all(), &(&1 in methods)) == []
    for name <- names, do: assert(Mix.Task.moduledoc(Mix.Tasks.Tame.Latency) =~ "`#{name}`")
  end

  test "a folder that is none of the package's is named" do
    library = %{
      app: :tame_no_such,
      folder: "libraries/none",
      natives: ["it.so"],
      needs: "a C compiler"
    }

    assert TreeLibrary.code_path(library) == []

    assert TreeLibrary.find(library) ==
             {:error,
              "there is no tame_no_such here: run MIX_ENV=prod mix compile in libraries/none of tame's repository, which needs " <>
                "a C compiler, or set TAME_NO_SUCH to the folder with its ebin and priv"}

    System.put_env("TAME_NO_SUCH", "/none")
    on_exit(fn -> System.delete_env("TAME_NO_SUCH") end)

    assert TreeLibrary.start(library) ==
             {:error,
              "TAME_NO_SUCH=/none: expected a folder with ebin/tame_no_such.beam and priv/it.so"}
  end
end
