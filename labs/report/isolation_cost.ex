defmodule Tame.Report.IsolationCost do
  @moduledoc """
  The finding on isolation, from whatever has measured it: calls of one size or of several, and how long a library that
  crashed is away. Pure.
  """

  alias Tame.Report.{Chart, Colours, Finding, Words}

  @typedoc "The median of a way into native code with a payload of that size."
  @type row :: {size_bytes :: non_neg_integer(), way(), p50_ns :: number()}

  @type way :: :nif | :dirty_nif | :isolated | :port

  @ways [
    {:nif, "NIF", Colours.hex(:blue)},
    {:dirty_nif, "dirty NIF", Colours.hex(:green)},
    {:isolated, "isolated NIF", Colours.hex(:amber)},
    {:port, "port", Colours.hex(:vermillion)}
  ]

  @doc """
  The finding, none where an isolated call was not measured. `recovery_ms` is how long after a crash the library answers
  again, nil where nobody looked.
  """
  @spec findings([row()], nil | number()) :: [Finding.t()]
  def findings(rows, recovery_ms \\ nil) do
    case for {bytes, :isolated, ns} <- rows, do: {bytes, ns} do
      [] ->
        []

      isolated ->
        spec = if match?([_], Enum.uniq_by(rows, &elem(&1, 0))), do: ladder(rows), else: lines(rows)

        [Finding.new("isolation", answer(Enum.sort(isolated), rows, recovery_ms), spec)]
    end
  end

  defp answer(isolated, rows, recovery_ms) do
    ["Native code that crashes takes the VM down; isolated, it takes down its own OS process"] ++
      recovery(recovery_ms) ++
      [". A call then costs "] ++
      costs(isolated, rows) ++ ["."]
  end

  defp recovery(nil), do: []
  defp recovery(ms), do: [", and answers again after ", {:strong, Words.time(ms * 1000)}]

  defp costs(sizes, rows) do
    Enum.uniq([hd(sizes), List.last(sizes)])
    |> Enum.map(&cost(&1, rows))
    |> Enum.intersperse(["; "])
    |> Enum.concat()
  end

  # With one payload, beside the other ways with the same.
  defp cost({bytes, ns}, rows) do
    others =
      for {way, of} <- [nif: "a NIF", dirty_nif: "a dirty NIF", port: "a port"],
          {^bytes, ^way, other} when other > 0 <- rows,
          do: "#{Words.digits(ns / other)} times #{of}"

    times = if others == [], do: "", else: ", " <> Words.list(others)
    [{:strong, Words.time(ns / 1000)}, " with #{Words.bytes(bytes)}#{times}"]
  end

  # One size: a dot a way.
  defp ladder(rows) do
    values =
      for {way, name, _} <- @ways, {_, ^way, ns} <- rows do
        us = max(ns / 1000, 0.001)
        %{method: name, kind: name, us: us, text: Words.time(us)}
      end

    Chart.answers("what a call costs by way into native code", "method", values,
      colours: colours(),
      tooltip: [%{field: "method", title: "method"}, Chart.number("us", "p50, µs")]
    )
  end

  # Several: a line a way, by size.
  defp lines(rows) do
    values =
      for {way, name, _} <- @ways, {bytes, ^way, ns} <- Enum.sort(rows) do
        %{method: name, bytes: max(bytes, 1), us: max(ns / 1000, 0.001)}
      end

    {low, high} = values |> Enum.map(& &1.us) |> Enum.min_max()
    {first, last} = values |> Enum.map(& &1.bytes) |> Enum.min_max()

    present =
      for {_, name, colour} <- @ways, Enum.any?(values, &(&1.method == name)), do: {name, colour}

    y = Chart.log_us([low / 1.3, high * 1.3], nil)

    Chart.new("what a call costs by its payload", 170, %{
      data: %{values: values},
      encoding: %{
        x: Chart.log_bytes([first, last], "payload"),
        y: %{y | axis: Chart.time_axis(low, high)},
        color: Chart.colours("method", present, %{columns: 2})
      },
      layer: [
        %{mark: %{type: "line", strokeWidth: 2}},
        %{mark: %{type: "circle", size: 30, opacity: 1}},
        Chart.nearest([
          %{field: "method", title: "method"},
          %{field: "bytes", type: "quantitative", title: "bytes", format: ","},
          Chart.number("us", "p50, µs")
        ])
      ]
    })
  end

  defp colours, do: for({_, name, colour} <- @ways, do: {name, colour})
end
