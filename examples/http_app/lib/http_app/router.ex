defmodule HttpApp.Router do
  @moduledoc """
  What the server answers.

  CPU work is done by jobs of tame.h, with a deadline, so handlers hold no scheduler and no request works for ever. More work
  than its job takes is refused at once, and the client is told when to come again.
  """
  import Tame.HTTP.Conn

  @deadline_ms 5000

  def init(options), do: options

  def call(%{method: "GET", path_info: []} = conn, _),
    do: text(conn, 200, "hello by #{conn.request.version}\n")

  # In slices on a scheduler, long ones on a dirty one: a job that reads iodata stays in the VM.
  def call(%{method: "POST", path_info: ["sha3"]} = conn, _) do
    working(conn, fn -> Base.encode16(:tame_sha3.hash(:sha3_256, conn.body), case: :lower) end)
  end

  # In the pool.
  def call(%{method: "GET", path_info: ["primes", below]} = conn, _) do
    case Integer.parse(below) do
      {number, ""} when number in 0..4_294_967_295 ->
        working(conn, fn -> Integer.to_string(HttpApp.Primes.below(number)) end)

      _ ->
        text(conn, 400, "#{inspect(below)} is no number from 0 to 4294967295\n")
    end
  end

  def call(conn, _), do: text(conn, 404, "not found\n")

  defp working(conn, fun) do
    text(conn, 200, [:tame.with(%{deadline_ms: @deadline_ms}, fun), "\n"])
  rescue
    error in ErlangError ->
      case error.original do
        {:tame, :busy} -> conn |> put_resp_header("retry-after", "1") |> text(503, "busy\n")
        {:tame, :deadline} -> text(conn, 503, "it took longer than #{@deadline_ms} ms\n")
        _ -> reraise error, __STACKTRACE__
      end
  end

  defp text(conn, status, body),
    do: conn |> put_resp_header("content-type", "text/plain") |> send_resp(status, body)
end
