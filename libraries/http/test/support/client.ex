defmodule Tame.HTTP.Test.Client do
  @moduledoc false
  # A server and what is said to it: raw bytes for HTTP/1.1, programs for the rest.

  import ExUnit.Assertions

  def start(options) do
    options = Enum.into(options, %{ip: {127, 0, 0, 1}, handler: &hello/1})
    {:ok, server} = :tame_http.start(options)
    ExUnit.Callbacks.on_exit(fn -> stop(server) end)
    {server, :tame_http.port(server)}
  end

  def stop(server) do
    :tame_http.drain(server, 0)
  catch
    # Ended by its test.
    _, _ -> :ok
  end

  def hello(_request), do: {200, [], "hello"}
  def echo(request), do: {200, [], request.body}

  # A certificate for localhost that signs itself, and its key, in this folder: the option tls.
  def certificate(folder) do
    [cert, key] = for name <- ["cert.pem", "key.pem"], do: Path.join(folder, name)
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]

    new =
      ~w(req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout) ++
        [key, "-out", cert]

    {_, 0} = System.cmd("openssl", new ++ subject, stderr_to_stdout: true)
    %{certfile: cert, keyfile: key}
  end

  # Output of curl, and its exit status.
  def curl(arguments),
    do: System.cmd("curl", ["-s", "--max-time", "20" | arguments], stderr_to_stdout: true)

  def url(port, path \\ "/"), do: "http://127.0.0.1:#{port}#{path}"

  def connect(port) do
    {:ok, socket} = :gen_tcp.connect({127, 0, 0, 1}, port, [:binary, active: false])
    socket
  end

  def send_raw(port, bytes) do
    socket = connect(port)
    :ok = :gen_tcp.send(socket, bytes)
    socket
  end

  # All that comes until the server closes.
  def all(socket, timeout \\ 20_000, so_far \\ "") do
    case :gen_tcp.recv(socket, 0, timeout) do
      {:ok, data} -> all(socket, timeout, so_far <> data)
      {:error, :closed} -> so_far
      {:error, :econnreset} -> so_far
      {:error, :timeout} -> flunk("the server does not close; it has sent #{inspect(so_far)}")
    end
  end

  # One answer with a content-length.
  def answer(socket, so_far \\ "") do
    with [head, body] <- :binary.split(so_far, "\r\n\r\n"),
         true <- byte_size(body) >= length_of(head) do
      [status_line | _] = String.split(head, "\r\n")
      {status_line |> String.split(" ") |> Enum.at(1) |> String.to_integer(), head, body}
    else
      _ ->
        {:ok, data} = :gen_tcp.recv(socket, 0, 20_000)
        answer(socket, so_far <> data)
    end
  end

  defp length_of(head) do
    case Regex.run(~r/content-length: (\d+)/i, head) do
      [_, length] -> String.to_integer(length)
      nil -> 0
    end
  end

  def get(port, path \\ "/"),
    do: port |> send_raw("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n") |> answer()

  # What the condition returns once it is true.
  def eventually(condition, tries \\ 1000) do
    true_at_last = condition.()

    cond do
      true_at_last ->
        true_at_last

      tries == 0 ->
        flunk("it has not come true")

      true ->
        Process.sleep(10)
        eventually(condition, tries - 1)
    end
  end

  # Every request has exactly one end. One look for both: requests that the kernel still holds of a
  # client that left may begin after it.
  def balanced(server) do
    i =
      eventually(fn ->
        i = :tame_http.info(server)
        i.open_requests == 0 and i.in_flight == 0 and i
      end)

    assert i.requests == i.answered + i.refused + i.failed + i.gone
    i
  end
end
