# CPU and requests a second of one server: answered by the native half, by an acceptor and by a process per request.
# Each takes its turns in one run; the median of the rounds counts. make bench; ROUNDS=3, SECONDS=5.
defmodule Bench do
  @rounds String.to_integer(System.get_env("ROUNDS", "3"))
  @seconds String.to_integer(System.get_env("SECONDS", "5"))

  def run do
    static = %{"/static" => {200, %{}, "Hello world"}}
    handler = fn _ -> {200, [], "Hello world"} end

    ways =
      for {name, run, path} <- [
            {"static", :process, "/static"},
            {"acceptor", :acceptor, "/"},
            {"process", :process, "/"}
          ] do
        {:ok, server} =
          :tame_http.start(%{ip: {127, 0, 0, 1}, run: run, handler: handler, static: static})

        {name, "http://127.0.0.1:#{:tame_http.port(server)}#{path}"}
      end

    IO.puts(
      "OTP #{:erlang.system_info(:otp_release)}, #{:erlang.system_info(:logical_processors)} processors, #{cpu()}"
    )

    for {title, arguments} <- [{"HTTP/1.1", ["--h1"]}, {"HTTP/2, 10 streams", ["-m", "10"]}] do
      rounds =
        for _ <- 1..@rounds,
            {name, url} <- Enum.shuffle(ways),
            do: {name, measure(url, arguments)}

      IO.puts("\n#{title}")

      for {name, _} <- ways do
        values = for {^name, value} <- rounds, do: value

        [rate, us] =
          for i <- 0..1,
              do: values |> Enum.map(&elem(&1, i)) |> Enum.sort() |> Enum.at(div(@rounds, 2))

        IO.puts(
          "#{String.pad_trailing(name, 10)} #{round(rate)} requests/s, #{Float.round(us, 2)} us of CPU each"
        )
      end
    end
  end

  defp measure(url, arguments) do
    cpu = cpu_us()
    {output, 0} = System.cmd("h2load", ["-c", "100", "-D", "#{@seconds}", url | arguments])
    now = cpu_us()
    [_, done] = Regex.run(~r/(\d+) done/, output)
    n = String.to_integer(done)
    {n / @seconds, (now - cpu) / n}
  end

  # Of this VM, all threads: user and system, in us.
  defp cpu_us do
    fields =
      File.read!("/proc/#{:os.getpid()}/stat")
      |> String.split(") ")
      |> List.last()
      |> String.split(" ")

    [user, system] = for i <- [11, 12], do: fields |> Enum.at(i) |> String.to_integer()
    (user + system) * 10_000
  end

  defp cpu do
    [_, model] = Regex.run(~r/model name\s*: (.*)/, File.read!("/proc/cpuinfo"))
    model
  end
end

Bench.run()
