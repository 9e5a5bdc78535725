defmodule Tame.Latency.Methods.Driver do
  @moduledoc false
  # The port driver tame_echo_drv, shared by its four methods: loading, opening, closing.

  @name ~c"tame_echo_drv"

  # Commands of erlang:port_control/3 and port_call/3, as in c_src/natives/echo/echo_drv.c.
  @echo_now 0
  @echo_async 1

  defmacro __using__(description) do
    description = Keyword.put(description, :isolation, :shared)

    quote do
      use Tame.Latency.Method, unquote(description)

      @impl true
      defdelegate open, to: Tame.Latency.Methods.Driver

      @impl true
      defdelegate close(port), to: Tame.Latency.Methods.Driver
    end
  end

  def echo_now, do: @echo_now
  def echo_async, do: @echo_async

  def open do
    # Drivers are counted by loads: each open has one, and its close gives it back.
    case :erl_ddll.load_driver(:tame_labs_native.dir(), @name) do
      :ok -> {:ok, :erlang.open_port({:spawn_driver, @name}, [:binary])}
      {:error, why} -> {:error, "the driver does not load: #{:erl_ddll.format_error(why)}"}
    end
  end

  def close(port) do
    true = :erlang.port_close(port)
    _ = :erl_ddll.unload_driver(@name)
    :ok
  end

  # The answer of the two methods that reply by message. The port is linked to the caller: if it
  # goes, the exit signal ends the wait.
  def await(port) do
    receive do
      {^port, {:data, data}} -> :erlang.binary_to_term(IO.iodata_to_binary(data))
    end
  end
end

defmodule Tame.Latency.Methods.DriverCall do
  @moduledoc "A port driver's `call` callback: the VM encodes the term, the driver copies it, the VM decodes."

  use Tame.Latency.Methods.Driver,
    id: :driver_call,
    data_type: "external term format",
    context_switch: "port lock"

  @impl true
  def echo(port, term), do: :erlang.port_call(port, 0, term)
end

defmodule Tame.Latency.Methods.DriverControl do
  @moduledoc "A port driver's `control` callback: bytes in, bytes out, in the caller's own time."

  use Tame.Latency.Methods.Driver,
    id: :driver_control,
    data_type: "external term format",
    context_switch: "port lock"

  alias Tame.Latency.Methods.Driver

  @impl true
  def echo(port, term) do
    port
    |> :erlang.port_control(Driver.echo_now(), :erlang.term_to_binary(term))
    |> :erlang.binary_to_term()
  end
end

defmodule Tame.Latency.Methods.DriverOutputv do
  @moduledoc """
  A port driver's `outputv` callback: an I/O vector in, a message out. Large binaries pass by
  reference in both directions.
  """

  use Tame.Latency.Methods.Driver,
    id: :driver_outputv,
    data_type: "external term format, I/O vector",
    context_switch: "port lock, message"

  alias Tame.Latency.Methods.Driver

  @impl true
  def echo(port, term) do
    true = :erlang.port_command(port, :erlang.term_to_iovec(term))
    Driver.await(port)
  end
end

defmodule Tame.Latency.Methods.DriverAsync do
  @moduledoc "`driver_async` and `ready_async`: a thread of the VM's async pool does the work."

  use Tame.Latency.Methods.Driver,
    id: :driver_async,
    data_type: "external term format",
    context_switch: "async thread, message"

  alias Tame.Latency.Methods.Driver

  @impl true
  def echo(port, term) do
    _ = :erlang.port_control(port, Driver.echo_async(), :erlang.term_to_binary(term))
    Driver.await(port)
  end
end
