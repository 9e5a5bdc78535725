defmodule Tame.Load.CellTest do
  # Not async: a cell uses all cores.
  use ExUnit.Case

  alias Tame.Load.{Cell, Figures, H2load, Threads}
  alias Tame.{Await, LoadServers}

  @no_cowboy LoadServers.no_cowboy()
  if @no_cowboy, do: IO.puts("skip: load, cowboy: #{@no_cowboy}")

  @no_h2load (case H2load.version() do
                {:ok, _} -> false
                {:error, why} -> why
              end)

  defp spec(server, more \\ []) do
    Map.merge(
      %{
        server: server,
        protocol: :h1,
        port: 0,
        work: {:tame_spin, :spin_yielding, [1000]},
        hello: %{rate: 100, connections: 4, streams: 1},
        jobs: %{rate: 50, connections: 4, streams: 1},
        lead_ms: 200,
        for_ms: 400,
        tail_ms: 100,
        wait_ms: 20_000
      },
      Map.new(more)
    )
  end

  defp figures(spec) do
    assert {:ok, raw} = Cell.run(spec, [])
    {raw, Figures.figures(raw, spec, 10_000)}
  end

  # What both sides counted is the same where nothing was given up.
  defp assert_counts(raw, figures) do
    assert figures.counts_agree?

    assert figures.hello_sent ==
             figures.hello_answered + figures.hello_refused + figures.hello_failed

    assert figures.job_sent == figures.job_answered + figures.job_refused + figures.job_failed

    assert {raw.counts.hello_came, raw.counts.hello_answered} ==
             {figures.hello_sent, figures.hello_answered}

    assert {raw.counts.job_came, raw.counts.job_answered, raw.counts.job_refused} ==
             {figures.job_sent, figures.job_answered, figures.job_refused}
  end

  for {server, protocol} <- [
        {:tame_load_cowboy, :h1},
        {:tame_load_cowboy, :h2},
        {:tame_load_cowboy_stream, :h1},
        {:tame_load_cowboy_stream, :h2}
      ] do
    @tag skip: @no_cowboy
    test "#{server} by #{protocol}: every request is answered, and both sides counted the same" do
      streams = if unquote(protocol) == :h2, do: 4, else: 1
      jobs = %{rate: 50, connections: 2, streams: streams}
      spec = spec(unquote(server), protocol: unquote(protocol), jobs: jobs)
      {raw, figures} = figures(spec)
      assert_counts(raw, figures)
      assert %{hello_answered: 70, job_answered: 20, died: nil} = figures
    end
  end

  test "a cell has what was seen from inside, from outside and by the clients on one axis" do
    before = File.ls!(System.tmp_dir!())
    {raw, figures} = figures(spec(:tame_load_bare))
    refute Enum.any?(File.ls!(System.tmp_dir!()) -- before, &(&1 =~ "tame_load_#{System.pid()}"))
    assert {:error, :econnrefused} = :gen_tcp.connect({127, 0, 0, 1}, raw.facts.port, [])
    assert_counts(raw, figures)
    assert figures.hello_p50_us > 0 and figures.hello_p50_us <= figures.hello_p99_us
    assert figures.hello_p999_us <= figures.hello_max_us
    assert [%{since_ms: -200} | _] = figures.intervals
    assert Enum.any?(figures.intervals, &(&1.jobs_per_s > 0))
    assert Enum.any?(figures.utilisation, &(&1.normal > 0))

    if File.exists?("/proc/self/schedstat") do
      assert figures.cores.regular > 0 and figures.us_per_request.regular > 0
      assert Enum.any?(figures.cpu, &(&1.normal > 0))
    end
  end

  test "what a pool refuses is refused on both sides" do
    jobs = %{rate: 2000, connections: 100, streams: 1}
    work = {:tame_spin, :spin_bounded, [10_000]}
    {raw, figures} = figures(spec(:tame_load_bare, work: work, jobs: jobs))
    assert_counts(raw, figures)
    # Its queue is short, so nothing is left when the client ends.
    assert figures.job_refused > 0 and figures.job_answered > 0 and figures.job_unanswered == 0
  end

  test "a server that dies is a result: when, and by which signal" do
    # Its clients end with it, however late the signal comes.
    {raw, figures} = figures(spec(LoadServers.Crashing, tail_ms: 10_000))
    assert %{how: "signal 11", after_ms: after_ms} = raw.died
    assert after_ms >= 200
    assert figures.hello_answered > 0
    assert figures.hello_failed + (figures.hello_planned - figures.hello_sent) > 0
  end

  test "a project's server with a fixed delay measures that delay" do
    p50_us = fn ->
      {raw, figures} =
        figures(spec(LoadServers.Slow, hello: %{rate: 50, connections: 20, streams: 1}))

      assert_counts(raw, figures)
      assert figures.hello_p50_us > 50_000
      figures.hello_p50_us
    end

    # What is more than the delay may be a turn of others.
    assert Enum.any?(1..20, fn _ -> p50_us.() < 200_000 end)
  end

  @tag skip: @no_h2load
  test "of a server that is a program of its own, that one's CPU counts" do
    [own, other] =
      for server <- [:tame_load_bare, LoadServers.Elsewhere] do
        assert {:ok, seen} = H2load.run(%{server: server, protocol: :h1, port: 0, for_s: 1}, [])
        assert seen.answered > 100 and seen.failed == 0
        seen.server_us_per_request
      end

    assert own > 1 and other < own / 10
  end

  test "all threads of a program that is no VM are others" do
    program = Port.open({:spawn_executable, System.find_executable("cat")}, [])
    {:os_pid, os_pid} = Port.info(program, :os_pid)
    # One that has just begun may have taken nothing yet.
    assert Await.until(fn -> Threads.read("#{os_pid}").ns.other > 0 end, 5000)
    assert %{regular: 0, dirty: 0, poll: 0, aux: 0} = Threads.read("#{os_pid}").ns
    Port.close(program)
    assert Await.until(fn -> Threads.read("#{os_pid}") == nil end, 5000)
  end

  test "one that does not answer, answers wrongly or does not start is one line" do
    for {server, answer_ms, expected} <- [
          {LoadServers.Failing, 20_000, "answers GET /hello with something else than 200"},
          {LoadServers.Mute, 300, "does not answer GET /hello within 300 ms"},
          {LoadServers.Unstartable, 300, "does not start: :no_licence"}
        ] do
      assert {:error, line} = Cell.run(spec(server, answer_ms: answer_ms), [])
      assert line =~ inspect(server) and line =~ expected
      refute line =~ "\n"
    end
  end

  test "a port in use is one line" do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)

    for server <- [:tame_load_bare | if(@no_cowboy, do: [], else: [:tame_load_cowboy])] do
      assert Cell.run(spec(server, port: port), []) ==
               {:error, "--port #{port}: is in use, expected a free one"}
    end
  end
end
