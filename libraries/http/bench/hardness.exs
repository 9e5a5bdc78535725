# What hostile clients do to a server and to its other clients: each attack for some seconds, beside a witness that asks for
# an answer every two milliseconds on a connection of its own.
#
#     mix run bench/hardness.exs                 all parts; some minutes
#     mix run bench/hardness.exs attacks idle    some of them
#
#   attacks   by attack: the witness's times, what the server counted, its memory before, at most, and after
#   random    RANDOM (default 1000000) strings of random bytes at the port
#   idle      CONNECTIONS (default 10000) idle connections: memory of each
#   h2spec    the conformance suite of that name, with TLS and without, where it is on PATH (go install
#             github.com/summerwind/h2spec/cmd/h2spec@latest)
#
# The server runs in a VM of its own, so its memory is its alone. Exit status 1: another client was not answered, a request was
# counted wrongly, memory was not given back, or h2spec has another failure than the one that README.md explains.

# Compiled to where the server's VM finds them as well.
folder = Path.join(Mix.Project.build_path(), "hardness")
File.mkdir_p!(folder)

support =
  for file <- ~w(client frames witness), do: Path.expand("../test/support/#{file}.ex", __DIR__)

{:ok, _, _} = Kernel.ParallelCompiler.compile_to_path(support, folder)
Code.prepend_path(folder)

defmodule Bench.Hardness do
  alias Tame.HTTP.Test.{Client, Frames, Witness}

  @parts ~w(attacks random idle h2spec)
  @seconds 5

  @options %{
    ip: {127, 0, 0, 1},
    handler: &Client.hello/1,
    header_timeout_ms: 2000,
    idle_timeout_ms: 2000,
    request_timeout_ms: 3000
  }

  # Bytes that are no preface of HTTP/2 may be a request of HTTP/1, where the port takes both.
  @explained "Sends invalid connection preface"

  # A megabyte is what allocators keep, more or less.
  @kept_kb 32_768

  def run([]), do: run(@parts)

  def run(parts) do
    IO.puts(
      "OTP #{:erlang.system_info(:otp_release)}, #{System.schedulers_online()} schedulers, load #{load()}"
    )

    good = for part <- parts, do: part(part)
    unless Enum.all?(good), do: System.halt(1)
  end

  defp load, do: "/proc/loadavg" |> File.read!() |> String.split() |> hd()

  # ---- the server, in a VM of its own ---------------------------------------------------------------

  defp with_server(options, fun) do
    paths = Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
    {:ok, peer, _} = :peer.start_link(%{connection: :standard_io, args: paths})
    {:ok, _} = :peer.call(peer, Application, :ensure_all_started, [:tame_http])

    options = Map.merge(@options, options)
    {:ok, server} = :peer.call(peer, :tame_http, :start, [options])
    port = :peer.call(peer, :tame_http, :port, [server])
    os_pid = :peer.call(peer, System, :pid, [])
    result = fun.(%{peer: peer, server: server, port: port, os_pid: os_pid})
    :peer.stop(peer)
    result
  end

  defp info(%{peer: peer, server: server}), do: :peer.call(peer, :tame_http, :info, [server])

  defp resident_kb(%{os_pid: os_pid}) do
    [_, kb] = Regex.run(~r/VmRSS:\s+(\d+)/, File.read!("/proc/#{os_pid}/status"))
    String.to_integer(kb)
  end

  # ---- attacks ---------------------------------------------------------------------------------------

  defp part("attacks") do
    IO.puts(
      "\n#{row(["attack", "witness p50 ms", "p99 ms", "max ms", "requests", "MB before", "most", "after"])}"
    )

    for {name, attack} <- [{"nobody", fn _ -> Process.sleep(@seconds * 1000) end} | attacks()],
        do: attack(name, attack)
  end

  defp part("random") do
    count = String.to_integer(System.get_env("RANDOM", "1000000"))

    with_server(%{}, fn on ->
      :rand.seed(:exsss, {1, 2, 3})
      began = System.monotonic_time(:millisecond)
      {_, times} = Witness.during(on.port, fn -> random(on.port, count) end)
      seconds = (System.monotonic_time(:millisecond) - began) / 1000
      balanced = settled(on)

      IO.puts(
        "\n#{count} random strings in #{round(seconds)} s: witness #{times(times)}; counts agree: #{balanced}"
      )

      balanced
    end)
  end

  defp part("idle") do
    count = String.to_integer(System.get_env("CONNECTIONS", "10000"))

    with_server(
      %{max_connections: count + 10, idle_timeout_ms: 600_000, header_timeout_ms: 600_000},
      fn on ->
        before = resident_kb(on)

        for {name, open} <- [{"HTTP/1.1", &keep_alive/1}, {"HTTP/2", &Frames.connect/1}] do
          sockets = for _ <- 1..count, do: open.(on.port)
          now = resident_kb(on)
          {_, times} = Witness.during(on.port, fn -> Process.sleep(2000) end)

          IO.puts(
            "\n#{count} idle connections of #{name}: #{Float.round((now - before) / count, 1)} KiB each in the server; witness #{times(times)}"
          )

          Enum.each(sockets, &:gen_tcp.close/1)
          true
        end
      end
    )
    |> Enum.all?()
  end

  defp part("h2spec") do
    case System.find_executable("h2spec") do
      nil ->
        IO.puts("\nh2spec: not on PATH")
        true

      h2spec ->
        folder = Path.join(System.tmp_dir!(), "tame_http_h2spec_#{System.pid()}")
        File.mkdir_p!(folder)
        tls = Client.certificate(folder)

        good =
          for {name, options, flags} <- [
                {"without TLS", %{}, []},
                {"over TLS", %{tls: tls}, ["-t", "-k"]}
              ],
              do: h2spec(h2spec, name, options, flags)

        File.rm_rf!(folder)
        Enum.all?(good)
    end
  end

  defp part(other) do
    IO.puts("no part #{other}, expected some of #{Enum.join(@parts, ", ")}")
    false
  end

  defp h2spec(program, name, options, flags) do
    patient = Map.merge(options, %{header_timeout_ms: 60_000, idle_timeout_ms: 60_000})

    with_server(patient, fn on ->
      arguments = ["-h", "127.0.0.1", "-p", "#{on.port}", "-o", "3" | flags]
      {text, _} = System.cmd(program, arguments, stderr_to_stdout: true)
      [_, failures] = String.split(text <> "Failures:", "Failures:", parts: 2)
      result = Regex.run(~r/^\d+ tests.*$/m, text) || ["no result"]
      IO.puts("\nh2spec #{name}: #{List.last(result)}")
      IO.puts(failures)
      failed = List.flatten(Regex.scan(~r/^ *× .*$/mu, failures))
      result != ["no result"] and Enum.all?(failed, &(flags == [] and &1 =~ @explained))
    end)
  end

  defp attack(name, attack) do
    with_server(%{}, fn on ->
      before = resident_kb(on)
      watcher = Task.async(fn -> most(on, before) end)
      {_, times} = Witness.during(on.port, fn -> attack.(on.port) end)
      send(watcher.pid, :enough)
      most = Task.await(watcher)
      balanced = settled(on)
      later = resident_kb(on)
      mb = &Float.round(&1 / 1024, 1)

      figures = [Enum.at(times, div(length(times), 2)), Witness.p99(times), List.last(times)]

      shown =
        Enum.map(figures, &Float.round(&1, 1)) ++
          [info(on).requests, mb.(before), mb.(most), mb.(later)]

      IO.puts(row([name | shown]) <> if(balanced, do: "", else: "  COUNTS DO NOT AGREE"))
      balanced and later - before < @kept_kb
    end)
  end

  defp most(on, kb) do
    receive do
      :enough -> kb
    after
      20 -> most(on, max(kb, resident_kb(on)))
    end
  end

  defp settled(on, tries \\ 500) do
    i = info(on)

    cond do
      i.connections == 0 and i.open_requests == 0 ->
        i.requests == i.answered + i.refused + i.failed + i.gone

      tries == 0 ->
        false

      true ->
        Process.sleep(20) && settled(on, tries - 1)
    end
  end

  defp attacks do
    [
      {"slowloris, 500 connections",
       fn port -> slow(port, 500, "GET / HTTP/1.1\r\nhost: a\r\nx: ") end},
      {"slow bodies, 500 connections",
       fn port ->
         slow(port, 500, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999\r\n\r\n")
       end},
      {"rapid reset", fn port -> again(port, &rapid_reset/1) end},
      {"continuation flood", fn port -> again(port, &continuation/1) end},
      {"settings flood",
       fn port ->
         again(port, &flood(&1, Frames.frame(:settings, 0, 0, <<4::16, 65_535::32>>)))
       end},
      {"ping flood",
       fn port -> again(port, &flood(&1, Frames.frame(:ping, 0, 0, <<1::64>>))) end},
      {"window of nothing", fn port -> again(port, &no_window/1) end},
      {"header bomb", fn port -> again(port, &bomb/1) end},
      {"connections that reset", fn port -> again(port, &reset/1) end},
      {"bodies that are refused", fn port -> again(port, &refused/1) end}
    ]
  end

  # The attack again and again for some seconds.
  defp again(port, attack),
    do: again(port, attack, System.monotonic_time(:millisecond) + @seconds * 1000)

  defp again(port, attack, until) do
    if System.monotonic_time(:millisecond) < until do
      attack.(port)
      again(port, attack, until)
    end
  end

  defp slow(port, count, head) do
    sockets = for _ <- 1..count, do: Client.send_raw(port, head)

    for _ <- 1..(@seconds * 10) do
      for socket <- sockets, do: :gen_tcp.send(socket, "y")
      Process.sleep(100)
    end

    Enum.each(sockets, &:gen_tcp.close/1)
  end

  defp rapid_reset(port) do
    socket = Frames.connect(port)

    Enum.reduce_while(0..9999, :ok, fn n, _ ->
      id = 2 * n + 1
      sent = :gen_tcp.send(socket, [Frames.get(id), Frames.frame(:rst_stream, 0, id, <<8::32>>)])
      {if(sent == :ok, do: :cont, else: :halt), sent}
    end)

    :gen_tcp.close(socket)
  end

  defp continuation(port) do
    socket = Frames.connect(port)
    piece = List.duplicate(Frames.literal("name", String.duplicate("v", 100)), 100)
    _ = :gen_tcp.send(socket, Frames.frame(:headers, 0x1, 1, Frames.fields()))
    Frames.flood(socket, Frames.frame(:continuation, 0, 1, piece), 1000)
    :gen_tcp.close(socket)
  end

  # Nobody reads what the server says to it.
  defp flood(port, frame) do
    socket = Frames.connect(port)
    :inet.setopts(socket, send_timeout: 300)
    Frames.flood(socket, List.duplicate(frame, 1000), 1000)
    :gen_tcp.close(socket)
  end

  defp no_window(port) do
    sockets =
      for _ <- 1..20 do
        socket = Frames.connect(port, [{4, 0}])
        _ = :gen_tcp.send(socket, for(id <- 1..99//2, do: Frames.get(id)))
        socket
      end

    Process.sleep(200)
    Enum.each(sockets, &:gen_tcp.close/1)
  end

  defp bomb(port) do
    socket = Frames.connect(port)
    large = [0x40, 1, "x", 0x7F, 0xA1, 0x1E, String.duplicate("y", 4000)]

    for id <- 1..39//2 do
      fields = [Frames.fields(), if(id == 1, do: large, else: []), :binary.copy(<<0xBE>>, 4000)]
      :gen_tcp.send(socket, Frames.frame(:headers, 0x5, id, fields))
    end

    :gen_tcp.close(socket)
  end

  defp reset(port) do
    socket = Client.send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    :inet.setopts(socket, linger: {true, 0})
    :gen_tcp.close(socket)
  end

  # It sends on after the 413, as far as the server reads.
  defp refused(port) do
    head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999\r\n\r\n"
    socket = Client.send_raw(port, head)
    :inet.setopts(socket, send_timeout: 300)
    Frames.flood(socket, :binary.copy("y", 65_536), 100)
    :gen_tcp.close(socket)
  end

  defp random(port, count) do
    for _ <- 1..count do
      prefix = Enum.random(["", "", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
      socket = Client.send_raw(port, [prefix, :rand.bytes(:rand.uniform(300))])
      # No ports of the client's are left waiting.
      :inet.setopts(socket, linger: {true, 0})
      :gen_tcp.close(socket)
    end
  end

  defp keep_alive(port) do
    socket = Client.send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    {200, _, _} = Client.answer(socket)
    socket
  end

  defp times(times) do
    "p50 #{Float.round(Enum.at(times, div(length(times), 2)), 1)} ms, p99 #{Float.round(Witness.p99(times), 1)} ms, " <>
      "max #{Float.round(List.last(times), 1)} ms"
  end

  defp row([name | figures]) do
    String.pad_trailing(name, 32) <> Enum.map_join(figures, &String.pad_leading("#{&1}", 15))
  end
end

Bench.Hardness.run(System.argv())
