defmodule Tame.Latency.Section do
  @moduledoc """
  What the latency lab has to say in the report, from its result. Pure.

  An overview of all methods with the table of all; the four pictures of Andrew Bennett's "Latency of Native Functions
  for Erlang and Elixir" (2017), measured here, and one of isolation, on one scale; latency by percentile of all methods.
  A picture without any measured method is left out; one with gaps says which methods are missing and why.
  """

  alias Tame.Latency.{Charts, Lines}
  alias Tame.Number
  alias Tame.Report.{Figure, Finding, IsolationCost, Section, Table, Words}

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
    {"× NIF", :number},
    {"GC runs", :number}
  ]

  # One method of each kind, for the first screen, and what it is in a sentence.
  @rungs [
    {@baseline, "NIF"},
    {"nif_dirty_cpu", "dirty NIF"},
    {"driver_call", "port driver"},
    {"isolated", "isolated NIF"},
    {"port", "port"},
    {"c_node", "C node"}
  ]

  # Those that tell what isolation costs.
  @ways [{:nif, @baseline}, {:dirty_nif, "nif_dirty_cpu"}, {:isolated, "isolated"}, {:port, "port"}]

  # What the clock counts: a method cannot be told to take less.
  @clock_us 0.001

  # The warnings of the lab that concern one figure.
  @of_overview ~w(overhead_visible out_of_range)
  @of_percentiles ~w(too_few_samples)

  @doc "The section, from a result of the latency lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    measured = result.methods |> Enum.filter(&ok?/1) |> Enum.sort_by(& &1.p50_us)
    findings = findings(result, measured)

    %Section{
      id: "latency",
      name: "Latency",
      title: "Latency: what a call into native code costs",
      findings: findings,
      conclusion:
        for(%{id: "call", answer: answer} <- findings, do: answer) ++ conclusion(measured),
      warnings: Section.warnings(result, :but, @of_overview ++ @of_percentiles),
      intro: intro(result, measured),
      facts: [
        {"payload", Number.bytes(result.payload_bytes)},
        {"calls a method", "#{Number.grouped(result.iterations)} in #{result.rounds} rounds"}
      ],
      words: Lines.isolations(),
      figures:
        [overview(result, measured)] ++
          pictures(result.methods, measured) ++ percentiles(result, measured)
    }
  end

  defp findings(_result, []), do: []

  defp findings(result, measured) do
    rungs = for {id, name} <- @rungs, method = find(measured, id), do: {method, name}

    call =
      if rungs == [] do
        []
      else
        spec = Charts.answer(rungs, find(measured, @baseline))
        [Finding.new("call", answer(result, rungs), spec)]
      end

    ways =
      for {way, id} <- @ways, method = find(measured, id) do
        {result.payload_bytes, way, 1000 * method.p50_us}
      end

    call ++ IsolationCost.findings(ways)
  end

  # The port against the NIF, then what lies between; without the two, each by itself.
  defp answer(result, rungs) do
    payload = Words.bytes(result.payload_bytes)

    case {find_rung(rungs, @baseline), find_rung(rungs, "port")} do
      {%{p50_us: low} = nif, %{} = port} when low > 0 ->
        others =
          for {%{id: id} = method, name} <- rungs, id not in [@baseline, "port"] do
            "#{a(name)} #{Words.time(method.p50_us)}"
          end

        [
          "A port takes ",
          {:strong, "#{Words.digits(port.p50_us / low)} times"},
          " as long as a NIF: #{Words.time(port.p50_us)} instead of #{Words.time(nif.p50_us)}, for #{payload} there and back"
          | if(others == [], do: ["."], else: ["; ", Words.list(others), "."])
        ]

      _ ->
        calls = for {method, name} <- rungs, do: "#{a(name)} #{Words.time(method.p50_us)}"
        "For #{payload} there and back takes #{Words.list(calls)}."
    end
  end

  defp find_rung(rungs, id),
    do: Enum.find_value(rungs, fn {method, _} -> method.id == id && method end)

  defp a("isolated" <> _ = name), do: "an #{name}"
  defp a(name), do: "a #{name}"

  defp conclusion([]), do: ["No method was measured."]

  defp conclusion(measured) do
    {fastest, slowest} = Enum.min_max_by(measured, & &1.p50_us)
    tail = Enum.max_by(measured, &(&1.p99_us / max(&1.p50_us, @clock_us)))

    [
      "Of all methods #{fastest.id} is the fastest (half of its calls within #{Words.time(fastest.p50_us)}) and #{slowest.id} " <>
        "the slowest (#{Words.time(slowest.p50_us)}). #{tail.id} has the longest tail: one call in a hundred takes " <>
        "#{Words.time(tail.p99_us)} or more."
    ]
  end

  defp intro(result, measured) do
    [
      "Each method takes a term from Erlang to native code and back, and what came back is compared with what was " <>
        "sent. Every call is timed by itself and every sample is kept. The methods take turns, round by round, so that a " <>
        "drift of the machine hits all alike. #{length(measured)} of #{length(result.methods)} methods were measured.",
      "p99 is the time that 99 of 100 calls stayed within. The colours stand for what the native code can take " <>
        "down with it, in every chart."
    ]
  end

  defp overview(%{methods: methods} = result, measured) do
    %Figure{
      id: "overview",
      title: "Isolation against latency",
      caption:
        [
          "Fastest first. The dot and its number are p50 in µs, the bar reaches to p99. Further right is slower, and each " <>
            "line of the grid is ten times the one before it."
        ] ++ not_drawn(Enum.reject(methods, &ok?/1)),
      warnings: Section.warnings(result, :only, @of_overview),
      spec: if(measured != [], do: Charts.overview(measured)),
      table: %Table{
        title: "All methods, in numbers",
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

  # Small multiples: the axes have room for all that is drawn in any of them.
  defp pictures(methods, measured) do
    shown =
      Enum.uniq(for {_, _, ids, _} <- @pictures, id <- ids, method = find(measured, id), do: method)

    case Enum.flat_map(@pictures, &picture(&1, methods, shown)) do
      [] ->
        []

      panels ->
        [
          %Figure{
            id: "pictures",
            title: "Side by side",
            caption: [
              "Latency by percentile, all pictures on one scale. To the right are the rare slow calls: each line of the " <>
                "grid is ten times as rare as the one before it."
            ],
            panels: panels,
            columns: 2
          }
        ]
    end
  end

  defp picture({id, title, ids, text}, methods, shown) do
    {measured, missing} =
      ids |> Enum.map(&(find(methods, &1) || not_run(&1))) |> Enum.split_with(&ok?/1)

    if measured == [] do
      []
    else
      [
        %{
          id: id,
          title: title,
          note: Enum.join([text | not_drawn(missing)], " "),
          spec: Charts.percentiles(measured, height: 240, scale_of: shown)
        }
      ]
    end
  end

  defp percentiles(_result, []), do: []

  defp percentiles(result, measured) do
    [
      %Figure{
        id: "percentiles",
        title: "All methods by percentile",
        caption: [
          "Greys are plain Erlang, cool colours run inside the VM, warm ones are OS processes, pink ones are nodes. " <>
            "Click a name or a line to bring that method out, shift-click to add another, double-click to see all again."
        ],
        warnings: Section.warnings(result, :only, @of_percentiles),
        spec: Charts.percentiles(measured, height: @tall_px, pick: true)
      }
    ]
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
