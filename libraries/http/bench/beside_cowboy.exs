# tame_http beside cowboy, by the load lab: CPU of a request on the server, in interleaved rounds; one request at a time; bodies of
# 1 MB; jobs of 10 ms at twice what the cores can do.
#
#     TAME_COWBOY=$(../../tools/cowboy) mix run bench/beside_cowboy.exs                all parts, ROUNDS=5
#     TAME_COWBOY=$(../../tools/cowboy) mix run bench/beside_cowboy.exs requests jobs  some of them
#
# What is compared is not quite alike: cowboy has a router, and makes a map of a request's headers; tame_http makes a list. Beside
# them others show how much of it is not theirs: hyper alone (alone.rs), what the same bytes cost the kernel (floor.c), and that
# with a process of the VM that is asked (floor_vm.c).

alias Tame.Load.{Cell, Client, H2load}
alias Tame.{OtherLoad, Stats, Turns}

home = Path.expand("..", __DIR__)
{_, 0} = System.cmd("make", ["-s", "beside"], cd: home, into: IO.stream())
System.put_env("TAME_HTTP_BUILD", Path.join(home, "build"))

# Compiled to where the servers' VMs find them as well.
folder = Path.join(Mix.Project.build_path(), "figures")
File.mkdir_p!(folder)

{:ok, _, _} =
  Kernel.ParallelCompiler.compile_to_path([Path.expand("figures/servers.ex", __DIR__)], folder)

Code.prepend_path(folder)

defmodule Bench.BesideCowboy do
  alias Tame.HTTP.Bench

  @parts ~w(requests alone bodies jobs)
  @rounds String.to_integer(System.get_env("ROUNDS", "5"))
  @seed Turns.seed()

  @stream {"cowboy, stream handler", :tame_load_cowboy_stream}
  @plain {"cowboy, plain handler", :tame_load_cowboy}
  @acceptor {"tame_http, one process", Bench.Acceptor}
  @process {"tame_http, a process for each", Bench.Process}
  @static {"tame_http, static route", Bench.Static}
  @alone {"hyper alone", Bench.Alone}
  @alone_asks {"hyper alone, and a thread asked", Bench.AloneAsks}
  @floor {"system calls alone", Bench.Floor}
  @floor_asks {"system calls, and a thread asked", Bench.FloorAsks}
  @floor_megabyte {"system calls alone", Bench.FloorMegabyte}
  @floor_vm {"system calls, and a process asked", Bench.FloorVM}
  @floor_vm_sends {"system calls, and a process sends", Bench.FloorVMSends}

  def run([]), do: run(@parts)

  def run(parts) do
    {:ok, _} = H2load.version()
    {:ok, _} = Tame.Load.Cowboy.find()
    :ok = :tame_labs_native.build()
    IO.puts("seed #{@seed}, #{@rounds} rounds, OTP #{System.otp_release()}, #{cpu()}")

    for part <- parts do
      load = OtherLoad.start()
      IO.puts("\n== #{part}\n")
      part(part)
      IO.puts("\nothers took #{OtherLoad.percent(load)} % of all CPU time")
    end
  end

  defp cpu do
    [_, model] = Regex.run(~r/model name\s*: (.*)/, File.read!("/proc/cpuinfo"))
    model
  end

  # ---- requests --------------------------------------------------------------------------------------

  defp part("requests") do
    for {protocol, title} <- [
          h1: "HTTP/1.1, 100 connections",
          h2: "HTTP/2, 100 connections of 10 streams"
        ] do
      ways = [@stream, @plain, @acceptor, @process, @static, @alone, @alone_asks, @floor]
      seen = closed(ways, protocol, %{})
      IO.puts("#{title}: CPU µs of a request, least to greatest of the rounds; requests/s")
      for {name, rounds} <- seen, do: IO.puts(line(name, rounds))
      of = fn {name, _} -> us(List.keyfind(seen, name, 0)) end
      IO.puts("stream handler ÷ one process: #{ratio(of.(@stream), of.(@acceptor))}")
      IO.puts("plain handler ÷ a process for each: #{ratio(of.(@plain), of.(@process))}")
      IO.puts("stream handler ÷ hyper alone: #{ratio(of.(@stream), of.(@alone))}")

      IO.puts(
        "stream handler ÷ hyper alone, and a thread asked: #{ratio(of.(@stream), of.(@alone_asks))}"
      )

      IO.puts("static route ÷ hyper alone: #{ratio(of.(@static), of.(@alone))}\n")
    end
  end

  defp part("alone") do
    ways = [
      @stream,
      @plain,
      @acceptor,
      @process,
      @static,
      @alone,
      @floor,
      @floor_asks,
      @floor_vm,
      @floor_vm_sends
    ]

    for protocol <- [:h1, :h2] do
      seen = rounds(for(way <- ways, do: {way, fn -> alone(way, protocol) end}))

      IO.puts(
        "#{protocol}, one connection, one request at a time, 500 a second: p50 and p99 µs, medians of the rounds"
      )

      for {name, times} <- seen do
        [p50, p99] = for i <- [0, 1], do: times |> Enum.map(&elem(&1, i)) |> Stats.median()
        IO.puts("#{String.pad_trailing(name, 34)} #{round(p50)} #{round(p99)}")
      end

      IO.puts("")
    end
  end

  defp part("bodies") do
    file = Path.join(System.tmp_dir!(), "tame_http_bench_#{System.pid()}")
    File.write!(file, Bench.Server.mb())

    for {title, more} <- [{"down", %{path: "/mb"}}, {"up", %{path: "/up", data: file}}],
        protocol <- [:h1, :h2] do
      client = Map.merge(more, %{connections: 8, streams: if(protocol == :h1, do: 1, else: 2)})

      # A floor reads no bodies.
      ways = [{"cowboy, plain handler", Bench.Cowboy}, @acceptor, @process]
      ways = if title == "down", do: ways ++ [@floor_megabyte], else: ways
      seen = closed(ways, protocol, client)

      IO.puts("1 MB #{title}, #{protocol}: MB for each second of CPU, medians of the rounds")

      for {name, _} = row <- seen,
          do: IO.puts("#{String.pad_trailing(name, 32)} #{round(1.0e6 / us(row))}")

      IO.puts("")
    end

    File.rm(file)
  end

  defp part("jobs") do
    for {name, server} <- [
          {"cowboy, plain handler", "tame_load_cowboy"},
          {"tame_http", "Tame.HTTP.Bench.Process"}
        ],
        protocol <- [:h1, :h2] do
      server = if server == "tame_load_cowboy", do: "cowboy", else: server

      result =
        Tame.Load.measure(
          only: ["placements"],
          server: server,
          protocol: protocol,
          placements: ["pool"],
          jobs: [10_000],
          rounds: 3
        )

      [cell] = result.cells

      IO.puts(
        "#{String.pad_trailing("#{name}, #{protocol}", 32)} hello p50 #{ms(cell.hello_p50_us)} p99 #{ms(cell.hello_p99_us)}; jobs: " <>
          "#{cell.job_answered} answered, #{cell.job_refused} refused, p50 #{ms(cell.job_p50_us)} p99 #{ms(cell.job_p99_us)}"
      )
    end
  end

  # ---- how -------------------------------------------------------------------------------------------

  defp closed(ways, protocol, client) do
    rounds(
      for {_, module} = way <- ways do
        {way,
         fn ->
           {:ok, seen} =
             H2load.run(Map.merge(client, %{server: module, protocol: protocol, port: 0}), [])

           if seen.failed > 0,
             do: IO.puts("#{seen.failed} of #{seen.sent} requests of #{elem(way, 0)} failed")

           seen
         end}
      end
    )
  end

  # Each in shuffled turns: [{name, what each round came to}].
  defp rounds(ways) do
    turns = ways |> Enum.with_index() |> Turns.all(@rounds, @seed)
    done = for {{{name, _}, measure}, place} <- turns, do: {place, name, measure.()}

    for {_, [{_, name, _} | _] = rounds} <- done |> Enum.group_by(&elem(&1, 0)) |> Enum.sort(),
        do: {name, Enum.map(rounds, &elem(&1, 2))}
  end

  defp alone({_, module}, protocol) do
    spec = %{server: module, protocol: protocol, port: 0, work: :nothing}

    Cell.with_server(spec, [], fn server ->
      client =
        Client.start(%{
          port: server.facts.port,
          protocol: protocol,
          path: "/hello",
          rate: 500,
          count: 1500,
          connections: 1,
          streams: 1,
          start_ns: 0,
          wait_ms: 1000
        })

      {:ok, seen} = Client.await(client, System.monotonic_time(:millisecond) + 20_000)

      times =
        for %{status: :answered, sent_ns: sent, done_ns: done} <- seen.requests,
            do: (done - sent) / 1000

      sorted = times |> Enum.drop(200) |> Enum.sort()
      {Enum.at(sorted, div(length(sorted), 2)), Enum.at(sorted, div(length(sorted) * 99, 100))}
    end)
  end

  defp line(name, rounds) do
    all = Enum.map(rounds, & &1.server_us_per_request)
    {low, high} = Enum.min_max(all)
    per_s = rounds |> Enum.map(& &1.per_s) |> Stats.median() |> round()

    "#{String.pad_trailing(name, 32)} #{number(Stats.median(all))} (#{number(low)} to #{number(high)})  #{per_s}"
  end

  defp us({_, rounds}), do: rounds |> Enum.map(& &1.server_us_per_request) |> Stats.median()
  defp ratio(one, other), do: number(one / other)
  defp number(n), do: :erlang.float_to_binary(n / 1, decimals: 2)
  defp ms(nil), do: "-"
  defp ms(us), do: "#{number(us / 1000)} ms"
end

Bench.BesideCowboy.run(System.argv())
