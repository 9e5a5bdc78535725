defmodule Tame.HTTP.TLSTest do
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    tls = certificate(folder)
    %{tls: tls, cert: tls.certfile}
  end

  defp https(port), do: "https://localhost:#{port}/"

  test "HTTP/2 and HTTP/1.1 by ALPN, and with no ALPN", %{tls: tls, cert: cert} do
    {server, port} = start(tls: tls, handler: fn r -> {200, [], "#{r.version} #{r.scheme}"} end)
    assert {"HTTP/2 https", 0} = curl(["--cacert", cert, https(port)])
    assert {"HTTP/1.1 https", 0} = curl(["--cacert", cert, "--http1.1", https(port)])
    assert {"HTTP/1.1 https", 0} = curl(["--cacert", cert, "--no-alpn", https(port)])
    # OTP takes no certificate that signs itself.
    options = [ssl: [verify: :verify_none]]
    url = String.to_charlist(https(port))

    assert {:ok, {{_, 200, _}, _, 'HTTP/1.1 https'}} =
             :httpc.request(:get, {url, []}, options, [])

    {output, 0} = System.cmd("h2load", ["-n", "2000", "-c", "10", "-m", "10", https(port)])
    assert output =~ "2000 succeeded"
    balanced(server)
  end

  test "clients that speak no TLS, or none that ends, do not stay", %{tls: tls} do
    {server, port} = start(tls: tls, header_timeout_ms: 200)
    plain = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    _ = all(plain)
    silent = connect(port)
    half = send_raw(port, <<22, 3, 1, 2, 0, 1>>)
    for socket <- [silent, half], do: all(socket)
    eventually(fn -> :tame_http.info(server).connections == 0 end)
  end

  test "files that are no certificate or key are said to be none", %{tls: tls, tmp_dir: folder} do
    none = Path.join(folder, "none")
    assert {:error, {:tls, text}} = try_start(%{tls | keyfile: none})
    assert text == none <> ": no such file or directory"
    empty = Path.join(folder, "empty")
    File.write!(empty, "nothing")
    assert {:error, {:tls, text}} = try_start(%{tls | certfile: empty})
    assert text == "the certificate file has no certificate in PEM"
    encrypted = Path.join(folder, "encrypted.pem")
    to = ["-out", encrypted, "-passout", "pass:secret"]
    {_, 0} = System.cmd("openssl", ["pkcs8", "-topk8", "-in", tls.keyfile | to])

    assert {:error, {:tls, text}} = try_start(%{tls | keyfile: tls.certfile})
    assert text == "the key file has no private key in PEM"

    # As old files have it.
    old = Path.join(folder, "old.pem")
    to = ["-aes128", "-out", old, "-passout", "pass:secret"]
    {_, 0} = System.cmd("openssl", ["ec", "-in", tls.keyfile | to], stderr_to_stdout: true)

    for key <- [encrypted, old] do
      assert {:error, {:tls, text}} = try_start(%{tls | keyfile: key})
      assert text == "the key file's private key is encrypted, and must not be"
    end

    garbage =
      "-----BEGIN CERTIFICATE-----\n#{Base.encode64("garbage")}\n-----END CERTIFICATE-----\n"

    File.write!(empty, [File.read!(tls.certfile), garbage])
    assert {:error, {:tls, text}} = try_start(%{tls | certfile: empty})
    assert text == "certificate 2 in the certificate file is none"

    for bad <- [%{certfile: empty}, %{tls | certfile: [:a]}, %{tls | keyfile: [0x110000]}] do
      assert {:error, {:bad_option, :tls, _}} = try_start(bad)
    end
  end

  defp try_start(tls), do: :tame_http.start(%{tls: tls, handler: &hello/1})
end
