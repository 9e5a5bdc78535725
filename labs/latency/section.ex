defmodule Tame.Latency.Section do
  @moduledoc """
  What the latency lab has to say in the report, from its result. Pure.

  An overview of all methods; the four pictures of Andrew Bennett's "Latency of Native Functions for Erlang and
  Elixir" (2017), measured here; latency by percentile of all methods. A picture without any measured method is left
  out; one with gaps says which methods are missing and why.
  """

  alias Tame.Latency.{Charts, Lines}
  alias Tame.Number
  alias Tame.Report.{Figure, Section, Table}

  @baseline "nif_normal"

  # The percentiles figure holds every line at once and needs the room.
  @tall_px 440

  @pictures [
    {"kinds", "Node, port, port driver, NIF", ~w(c_node port driver_call nif_normal),
     "The four ways out of Erlang, from the most isolated to the least. A node and a port must write " <>
       "the term out and read it back on both sides; a driver and a NIF work in the VM's own memory."},
    {"drivers", "Port drivers: call, control, outputv, async",
     ~w(driver_call driver_control driver_outputv driver_async),
     "The callbacks of one port driver. Call and control answer at once on the caller's scheduler, outputv " <>
       "answers by message, and so does async, after a thread of the VM's pool did the work."},
    {"nifs", "NIFs: normal, yielding, dirty",
     ~w(nif_normal nif_yielding nif_dirty_cpu nif_dirty_io nif_yielding_dirty),
     "The price of not blocking a scheduler. Yielding is one hop on the same scheduler; dirty moves the process to " <>
       "another scheduler and back; yielding dirty starts as a normal NIF and decides then to be dirty."},
    {"threads", "NIFs: a new thread, a thread queue, dirty CPU",
     ~w(nif_thread_new nif_thread_queue nif_dirty_cpu),
     "Threads of one's own against the VM's dirty ones. A thread per call pays for its start each time; " <>
       "the workers of a queue are there already, and both answer by message."},
    {"isolation", "Isolation against latency: NIF, dirty NIF, isolated NIF, port",
     ~w(nif_normal nif_dirty_cpu isolated port),
     "What it costs to keep a crash of native code out of the VM. An isolated NIF library runs unmodified in an OS " <>
       "process as a port does, and is reached by memory that the two share."}
  ]

  @full_columns [
    {"method", :code},
    {"isolation", :kind},
    {"data type", :text},
    {"context switch", :text},
    {"p50 µs", :number},
    {"p90 µs", :number},
    {"p99 µs", :number},
    {"p99.9 µs", :number},
    {"max µs", :number},
    {"mean µs", :number},
    {"× #{@baseline}", :number},
    {"GC runs", :number}
  ]

  @short_columns [
    {"method", :code},
    {"isolation", :kind},
    {"p50 µs", :number},
    {"p90 µs", :number},
    {"p99 µs", :number},
    {"p99.9 µs", :number},
    {"max µs", :number}
  ]

  @doc "The section, from a result of the latency lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    measured = result.methods |> Enum.filter(&ok?/1) |> Enum.sort_by(& &1.p50_us)

    %Section{
      id: "latency",
      title: "Latency: what a call into native code costs",
      warnings: Enum.map(result.warnings, &Map.take(&1, [:id, :text])),
      intro: intro(result, measured),
      facts: [
        {"payload", Number.bytes(result.payload_bytes)},
        {"calls a method", "#{Number.grouped(result.iterations)} in #{result.rounds} rounds"}
      ],
      words: Lines.isolations(),
      figures:
        [overview(result.methods, measured)] ++
          Enum.flat_map(@pictures, &picture(&1, result.methods)) ++
          percentiles(measured)
    }
  end

  defp intro(result, measured) do
    [
      "Each method takes a term from Erlang to native code and back, and what came back is compared with what was " <>
        "sent. Every call is timed by itself and every sample is kept. The methods take turns, round by round, so that a " <>
        "drift of the machine hits all alike. #{length(measured)} of #{length(result.methods)} methods were measured."
    ] ++
      headline(measured) ++
      [
        "p99 is the time that 99 of 100 calls stayed within. The colours stand for what the native code can take " <>
          "down with it, in every chart:"
      ]
  end

  # The post's question, answered with this machine's numbers.
  defp headline(measured) do
    case find(measured, @baseline) do
      nil ->
        []

      baseline ->
        others =
          for id <- ~w(nif_dirty_cpu driver_call port c_node), method = find(measured, id) do
            "#{short_us(method)} by #{id}#{times_text(method, baseline)}"
          end

        [
          "Half of all calls came back within " <>
            Enum.join(["#{short_us(baseline)} by #{@baseline}" | others], ", ") <> "."
        ]
    end
  end

  defp short_us(method), do: "#{Number.short(method.p50_us)}\u00A0µs"

  defp times_text(method, baseline) do
    case times(method, baseline) do
      nil -> ""
      times -> " (#{times}\u00A0×)"
    end
  end

  defp overview(methods, measured) do
    %Figure{
      id: "overview",
      title: "Isolation against latency",
      caption:
        [
          "Fastest first. The dot and its number are p50 in µs, the bar reaches to p99. Further right is slower, and each " <>
            "line of the grid is ten times the one before it."
        ] ++ not_drawn(Enum.reject(methods, &ok?/1)),
      spec: if(measured != [], do: Charts.overview(measured)),
      table: %Table{
        title: "All methods",
        columns: @full_columns,
        rows: full_rows(measured, methods)
      }
    }
  end

  defp full_rows(measured, methods) do
    baseline = find(measured, @baseline)

    rows =
      for method <- measured do
        description(method) ++
          us(method, [:p50_us, :p90_us, :p99_us, :p999_us, :max_us, :mean_us]) ++
          [times(method, baseline), to_string(method.gc_runs)]
      end

    rows ++
      for method <- methods, not ok?(method) do
        description(method) ++ [{:note, why(method)}]
      end
  end

  defp picture({id, title, ids, text}, methods) do
    {measured, missing} =
      ids |> Enum.map(&(find(methods, &1) || not_run(&1))) |> Enum.split_with(&ok?/1)

    if measured == [] do
      []
    else
      [
        %Figure{
          id: id,
          title: title,
          caption: [text | not_drawn(missing)],
          spec: Charts.percentiles(measured),
          table: short_table(title, measured)
        }
      ]
    end
  end

  defp percentiles([]), do: []

  defp percentiles(measured) do
    [
      %Figure{
        id: "percentiles",
        title: "All methods by percentile",
        caption: [
          "Greys are plain Erlang, cool colours run inside the VM, warm ones are OS processes, pink ones are nodes. " <>
            "Click a name or a line to bring that method out, shift-click to add another, double-click to see all again."
        ],
        spec: Charts.percentiles(measured, height: @tall_px, pick: true),
        table: short_table("All methods by percentile", measured)
      }
    ]
  end

  defp short_table(title, measured) do
    rows =
      for method <- Enum.sort_by(measured, & &1.p50_us) do
        [method.id, isolation(method)] ++ us(method, [:p50_us, :p90_us, :p99_us, :p999_us, :max_us])
      end

    %Table{title: "#{title}, in numbers", columns: @short_columns, rows: rows}
  end

  defp description(method) do
    [method.id, isolation(method), method.data_type, method.context_switch]
  end

  defp isolation(%{isolation: name}), do: {:dot, Lines.isolation(name), name}

  defp us(method, keys), do: for(key <- keys, do: Number.short(Map.fetch!(method, key)))

  # A baseline that took no time on this clock has no multiples.
  defp times(_method, nil), do: nil
  defp times(_method, %{p50_us: us}) when us <= 0, do: nil
  defp times(method, baseline), do: Number.short(method.p50_us / baseline.p50_us)

  defp not_drawn([]), do: []

  defp not_drawn(missing) do
    ["Not drawn: " <> Enum.map_join(missing, "; ", &"#{&1.id}, #{why(&1)}") <> "."]
  end

  defp not_run(id), do: %{id: id, status: "not part of this run", reason: nil}

  defp why(%{status: status, reason: nil}), do: status
  defp why(%{status: status, reason: reason}), do: "#{status}: #{reason}"

  defp ok?(method), do: method.status == "ok"

  defp find(methods, id), do: Enum.find(methods, &(&1.id == id))
end
