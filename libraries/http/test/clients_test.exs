defmodule Tame.HTTP.ClientsTest do
  # Programs that people have: each gets a page over TLS, and says by which protocol.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    tls = certificate(folder)
    {server, port} = start(tls: tls, handler: &page/1)
    %{server: server, tls: tls, port: port, url: "https://localhost:#{port}/page"}
  end

  defp page(%{version: version, scheme: scheme, path: path}) do
    text = "#{version} #{scheme} #{path}"
    {200, %{"content-type" => "text/html"}, ["<p>", text, "</p>"]}
  end

  test "curl", %{url: url, tls: tls, server: server} do
    for {flag, version} <- [{"--http2", "HTTP/2"}, {"--http1.1", "HTTP/1.1"}] do
      expected = "<p>#{version} https /page</p>"
      assert {^expected, 0} = curl([flag, "--cacert", tls.certfile, url])
    end

    assert %{answered: 2} = balanced(server)
  end

  test "nghttp, with several streams and a body", %{url: url, tls: tls, server: server} do
    arguments = ["-m", "20", "-d", tls.certfile, url]
    {output, 0} = System.cmd("nghttp", arguments, stderr_to_stdout: true)
    assert length(String.split(output, "HTTP/2 https /page")) == 21
    assert %{answered: 20, connections_total: 1} = balanced(server)
  end

  test "h2load, both protocols", %{url: url, server: server} do
    for flags <- [["-m", "10"], ["--h1"]] do
      {output, 0} = System.cmd("h2load", ["-n", "1000", "-c", "10", url | flags])
      assert output =~ "1000 succeeded, 0 failed"
    end

    assert %{answered: 2000} = balanced(server)
  end

  test "Erlang's httpc, whose connections stay", %{url: url, server: server} do
    # OTP takes no certificate that signs itself.
    options = [ssl: [verify: :verify_none]]
    body = :binary.copy("a", 300_000)

    for _ <- 1..3 do
      request = {String.to_charlist(url), [], ~c"text/plain", body}
      assert {:ok, {{_, 200, _}, _, page}} = :httpc.request(:post, request, options, [])
      assert to_string(page) == "<p>HTTP/1.1 https /page</p>"
    end

    assert %{answered: 3} = balanced(server)
  end

  # A browser that starts on a machine that is busy.
  test "Chromium", %{url: url, tmp_dir: folder, server: server} do
    chromium =
      System.find_executable("chromium") ||
        flunk("there is no chromium on PATH; run: apt-get install chromium")

    flags =
      ~w(--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --ignore-certificate-errors) ++
        ["--user-data-dir=#{folder}/profile", "--dump-dom", url]

    # What it says of buses that are not there is not looked at.
    quiet = ["-c", "exec timeout 100 \"$@\" 2>/dev/null", "sh", chromium | flags]
    {output, 0} = System.cmd("sh", quiet)
    assert output =~ "<body><p>HTTP/2 https /page</p>"
    assert balanced(server).answered >= 1
  end
end
