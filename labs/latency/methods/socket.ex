defmodule Tame.Latency.Methods.Socket do
  @moduledoc false
  # What both socket methods share. The VM listens and starts tame_echo, which connects. Its
  # standard input stays open as a port: that is how it ends with us, and how we learn its
  # exit status.

  alias Tame.Latency.{Methods, Program}

  @accept_ms 5_000

  # {packet, 4} is the framing of tame_echo. The driver reads a frame that fits into its buffer in
  # few turns: with 128 KiB for one of 64 KiB it takes a third less time than with less.
  @options [
    :binary,
    packet: 4,
    active: false,
    nodelay: true,
    backlog: 1,
    buffer: 131_072
  ]

  # The program's arguments are made of the port number that the listening socket got.
  @spec open(:inet.socket_address(), (:inet.port_number() -> [String.t()])) ::
          {:ok, term()} | {:error, String.t()}
  def open(address, args) do
    case :gen_tcp.listen(0, [{:ip, address} | @options]) do
      {:ok, listener} ->
        try do
          # Of an AF_UNIX socket it is the path, which nobody needs.
          {:ok, port} = :inet.port(listener)

          with {:ok, program} <- Program.open(Methods.Port.program(), args.(port), Program.lines()) do
            accept(listener, program)
          end
        after
          :gen_tcp.close(listener)
        end

      {:error, why} ->
        {:error, "cannot listen on #{inspect(address)}: #{:inet.format_error(why)}"}
    end
  end

  defp accept(listener, program) do
    case :gen_tcp.accept(listener, @accept_ms) do
      {:ok, socket} ->
        {:ok, {socket, Program.hold_stdin(program)}}

      {:error, why} ->
        message = "#{Program.how_it_ended(program)}; it did not connect: #{:inet.format_error(why)}"
        Program.close(program)
        {:error, message}
    end
  end

  # No time limit: the program's end, however it comes, closes the socket. The driver takes an I/O
  # vector, so large binaries are not copied into one before they are sent.
  def echo({socket, program}, term) do
    with :ok <- :gen_tcp.send(socket, :erlang.term_to_iovec(term)),
         {:ok, data} <- :gen_tcp.recv(socket, 0) do
      :erlang.binary_to_term(data)
    else
      {:error, _closed} -> Program.ended!(program)
    end
  end

  def close({socket, program}) do
    Program.close(program)
    :gen_tcp.close(socket)
  end
end

defmodule Tame.Latency.Methods.SocketUnix do
  @moduledoc "The echo program over an AF_UNIX stream socket, with the frames of `{:packet, 4}`."

  use Tame.Latency.Method,
    id: :socket_unix,
    isolation: :process,
    data_type: "external term format",
    context_switch: "OS process, AF_UNIX socket"

  alias Tame.Latency.Methods.Socket

  # The socket's file lies in a folder that only we can enter, and both are gone as soon as the
  # program is connected.
  @impl true
  def open do
    folder =
      Path.join(System.tmp_dir!(), "tame-#{System.pid()}-#{System.unique_integer([:positive])}")

    path = Path.join(folder, "echo.sock")

    with :ok <- File.mkdir(folder),
         :ok <- File.chmod(folder, 0o700) do
      try do
        Socket.open({:local, path}, fn _ -> ["unix", path] end)
      after
        File.rm_rf!(folder)
      end
    else
      {:error, why} -> {:error, "cannot make the folder #{folder}: #{:file.format_error(why)}"}
    end
  end

  @impl true
  defdelegate echo(state, term), to: Socket

  @impl true
  defdelegate close(state), to: Socket
end

defmodule Tame.Latency.Methods.SocketTCP do
  @moduledoc "The echo program over loopback TCP, without Nagle's algorithm on either side."

  use Tame.Latency.Method,
    id: :socket_tcp,
    isolation: :process,
    data_type: "external term format",
    context_switch: "OS process, TCP socket"

  alias Tame.Latency.Methods.Socket

  @impl true
  def open, do: Socket.open({127, 0, 0, 1}, &["tcp", Integer.to_string(&1)])

  @impl true
  defdelegate echo(state, term), to: Socket

  @impl true
  defdelegate close(state), to: Socket
end
