defmodule Tame.Latency.Methods.SocketOTP do
  @moduledoc "The echo program over loopback TCP, by OTP's own NIF: the module `socket`."

  use Tame.Latency.Method,
    id: :socket_otp,
    isolation: :process,
    data_type: "external term format",
    context_switch: "OS process, TCP socket"

  alias Tame.Latency.Methods.Framed

  @impl true
  def open, do: Framed.open(__MODULE__)

  @impl true
  defdelegate echo(state, term), to: Framed

  @impl true
  defdelegate close(state), to: Framed

  # ---- for Framed ----

  def listen(address) do
    with {:ok, socket} <- :socket.open(:inet, :stream, :tcp),
         :ok <- :socket.bind(socket, %{family: :inet, addr: address, port: 0}),
         :ok <- :socket.listen(socket, 1),
         {:ok, %{port: port}} <- :socket.sockname(socket),
         do: {:ok, socket, port}
  end

  def accept(socket, ms) do
    with {:ok, socket} <- :socket.accept(socket, ms),
         :ok <- :socket.setopt(socket, {:tcp, :nodelay}, true),
         do: {:ok, socket}
  end

  def send(socket, bytes), do: :socket.send(socket, bytes)

  def recv(socket, size), do: :socket.recv(socket, size)

  def shut(socket), do: :socket.close(socket)
end

defmodule Tame.Latency.Methods.SocketTameTCP do
  @moduledoc "The echo program over loopback TCP, by `tame_tcp`: a NIF on `tame/fd.h` (`libraries/tcp`)."

  use Tame.Latency.Method,
    id: :socket_tame_tcp,
    isolation: :process,
    data_type: "external term format",
    context_switch: "OS process, TCP socket"

  alias Tame.Latency.Methods.Framed
  alias Tame.TreeLibrary

  @compile {:no_warn_undefined, :tame_tcp}

  @library %{
    app: :tame_tcp,
    folder: "libraries/tcp",
    natives: ["tame_tcp_nif.so"],
    needs: "a C compiler"
  }

  @doc "Whether it can be measured here."
  @spec find() :: {:ok, [Path.t()]} | {:error, String.t()}
  def find, do: TreeLibrary.find(@library)

  @impl true
  def open do
    case TreeLibrary.start(@library) do
      :ok -> Framed.open(__MODULE__)
      {:error, why} -> {:skip, why}
    end
  end

  @impl true
  defdelegate echo(state, term), to: Framed

  @impl true
  defdelegate close(state), to: Framed

  # ---- for Framed ----

  def listen(address) do
    with {:ok, socket} <- :tame_tcp.listen(0, [:binary, ip: address, active: false, nodelay: true]),
         {:ok, {_, port}} <- :tame_tcp.sockname(socket),
         do: {:ok, socket, port}
  end

  def accept(socket, ms), do: :tame_tcp.accept(socket, ms)

  def send(socket, bytes), do: :tame_tcp.send(socket, bytes)

  def recv(socket, size), do: :tame_tcp.recv(socket, size)

  def shut(socket), do: :tame_tcp.close(socket)
end

defmodule Tame.Latency.Methods.Framed do
  @moduledoc false
  # What both have in common: gen_tcp reads and writes the frames of tame_echo itself ({packet, 4}), these do not: they receive
  # what is there, with the length in front, and then the rest.

  alias Tame.Latency.{Methods, Program}

  @loopback {127, 0, 0, 1}
  @accept_ms 5_000

  @spec open(module()) :: {:ok, term()} | {:error, String.t()}
  def open(way) do
    with {:ok, listener, port} <- way.listen(@loopback) do
      try do
        arguments = ["tcp", Integer.to_string(port)]

        with {:ok, program} <- Program.open(Methods.Port.program(), arguments, Program.lines()),
             do: accept(way, listener, program)
      after
        way.shut(listener)
      end
    else
      {:error, why} -> {:error, "cannot listen on #{inspect(@loopback)}: #{inspect(why)}"}
    end
  end

  defp accept(way, listener, program) do
    case way.accept(listener, @accept_ms) do
      {:ok, socket} ->
        {:ok, {way, socket, Program.hold_stdin(program)}}

      {:error, why} ->
        message = "#{Program.how_it_ended(program)}; it did not connect: #{inspect(why)}"
        Program.close(program)
        {:error, message}
    end
  end

  def echo({way, socket, program}, term) do
    bytes = :erlang.term_to_iovec(term)

    with :ok <- way.send(socket, [<<:erlang.iolist_size(bytes)::32>> | bytes]),
         {:ok, <<size::32, first::binary>>} <- way.recv(socket, 0),
         {:ok, data} <- whole(way, socket, first, size) do
      :erlang.binary_to_term(data)
    else
      {:error, _closed} -> Program.ended!(program)
    end
  end

  # A short answer comes with its length at once.
  defp whole(_way, _socket, first, size) when byte_size(first) == size, do: {:ok, first}

  defp whole(way, socket, first, size) do
    with {:ok, rest} <- way.recv(socket, size - byte_size(first)), do: {:ok, first <> rest}
  end

  def close({way, socket, program}) do
    Program.close(program)
    _ = way.shut(socket)
    :ok
  end
end

defmodule Tame.Latency.Methods.Nng do
  @moduledoc false
  # What both have in common: two sockets of nng's, connected in this VM; what goes into the one comes out of the other, by
  # nng's threads and a readiness event.

  alias Tame.TreeLibrary

  @compile {:no_warn_undefined, :tame_nng}

  @library %{
    app: :tame_nng,
    folder: "libraries/nng",
    natives: ["tame_nng_nif.so", "tame_nng_drv.so"],
    needs: "libnng-dev"
  }

  @ms 10_000

  @spec find() :: {:ok, [Path.t()]} | {:error, String.t()}
  def find, do: TreeLibrary.find(@library)

  @spec open(:nif | :driver) :: {:ok, term()} | {:skip, String.t()} | {:error, String.t()}
  def open(way) do
    case TreeLibrary.start(@library) do
      :ok -> connect(way)
      {:error, why} -> {:skip, why}
    end
  end

  defp connect(way) do
    url = "inproc://tame_labs_#{System.pid()}_#{System.unique_integer([:positive])}"

    with {:ok, near} <- :tame_nng.open(:pair0, by: way),
         {:ok, far} <- :tame_nng.open(:pair0, by: way),
         {:ok, _} <- :tame_nng.listen(far, url),
         {:ok, _} <- :tame_nng.dial(near, url, [:wait]) do
      {:ok, {near, far}}
    else
      {:error, why} -> {:error, "nng by #{way}: #{inspect(why)}"}
    end
  end

  def echo({near, far}, term) do
    :ok = :tame_nng.send(near, :erlang.term_to_iovec(term), @ms)
    {:ok, data} = :tame_nng.recv(far, @ms)
    :erlang.binary_to_term(data)
  end

  def close({near, far}) do
    :ok = :tame_nng.close(near)
    :tame_nng.close(far)
  end
end

defmodule Tame.Latency.Methods.NngNIF do
  @moduledoc "nng as a NIF on `tame/fd.h` (`libraries/nng`), between two of its sockets in this VM."

  use Tame.Latency.Method,
    id: :nng_nif,
    isolation: :shared,
    data_type: "external term format",
    context_switch: "nng's threads, a descriptor's event"

  alias Tame.Latency.Methods.Nng

  @impl true
  def open, do: Nng.open(:nif)

  @impl true
  defdelegate echo(state, term), to: Nng

  @impl true
  defdelegate close(state), to: Nng
end

defmodule Tame.Latency.Methods.NngDriver do
  @moduledoc "nng as a port driver on `tame/driver.h` (`libraries/nng`), between two of its sockets in this VM."

  use Tame.Latency.Method,
    id: :nng_driver,
    isolation: :shared,
    data_type: "external term format",
    context_switch: "nng's threads, a descriptor's event"

  alias Tame.Latency.Methods.Nng

  @impl true
  def open, do: Nng.open(:driver)

  @impl true
  defdelegate echo(state, term), to: Nng

  @impl true
  defdelegate close(state), to: Nng
end
