defmodule Tame.HTTP.Bench.Server do
  @moduledoc false
  # Servers of the load lab on tame_http: what differs is said by `use`. All answer the same.

  @mb :binary.copy("x", 1_000_000)

  defmacro __using__(options) do
    quote do
      def protocols, do: [:h1, :h2]
      def start(port, _protocol), do: Tame.HTTP.Bench.Server.start(port, unquote(options))
    end
  end

  def start(port, options) do
    {:ok, _} = Application.ensure_all_started(:tame_http)

    options =
      %{ip: {127, 0, 0, 1}, port: port, handler: &__MODULE__.answer/1}
      |> Map.merge(Map.new(options))

    {:ok, server} = :tame_http.start(options)
    {:ok, :tame_http.port(server)}
  end

  def answer(%{path: "/mb"}), do: {200, [], @mb}
  def answer(%{path: "/up", body: body}), do: {200, [], Integer.to_string(byte_size(body))}

  def answer(%{path: path}) do
    {status, body} = :tame_load_work.answer(path)
    {status, [{"content-type", "text/plain"}], body}
  end

  def mb, do: @mb
end

defmodule Tame.HTTP.Bench.Acceptor do
  @moduledoc false
  use Tame.HTTP.Bench.Server, run: :acceptor
end

defmodule Tame.HTTP.Bench.Process do
  @moduledoc false
  use Tame.HTTP.Bench.Server, run: :process
end

defmodule Tame.HTTP.Bench.Static do
  @moduledoc false
  use Tame.HTTP.Bench.Server,
    static: %{"/hello" => {200, [{"content-type", "text/plain"}], "Hello world"}}
end

defmodule Tame.HTTP.Bench.Cowboy do
  @moduledoc false
  # cowboy's plain handler with bodies, as its manual has them.
  @compile {:no_warn_undefined, [:cowboy_router, :cowboy_req]}

  def protocols, do: [:h1, :h2]

  def start(port, _protocol) do
    dispatch = :cowboy_router.compile([{:_, [{:_, __MODULE__, []}]}])
    :tame_load_cowboy.listen(__MODULE__, port, %{env: %{dispatch: dispatch}})
  end

  def init(%{path: "/mb"} = request, state),
    do: {:ok, :cowboy_req.reply(200, %{}, Tame.HTTP.Bench.Server.mb(), request), state}

  def init(%{path: "/up"} = request, state) do
    {size, request} = read(request, 0)
    {:ok, :cowboy_req.reply(200, %{}, Integer.to_string(size), request), state}
  end

  def init(request, state), do: :tame_load_cowboy.init(request, state)

  defp read(request, size) do
    case :cowboy_req.read_body(request) do
      {:ok, data, request} -> {size + byte_size(data), request}
      {:more, data, request} -> read(request, size + byte_size(data))
    end
  end
end

defmodule Tame.HTTP.Bench.Program do
  @moduledoc false
  # Servers that are programs of their own, built by `make beside`.

  defmacro __using__([name | more]) do
    quote do
      def protocols, do: [:h1, :h2]

      def start(port, _protocol),
        do: Tame.HTTP.Bench.Program.start(unquote(name), ["#{port}" | unquote(more)])
    end
  end

  def start(name, arguments) do
    program = Path.join(System.fetch_env!("TAME_HTTP_BUILD"), name)
    options = [:binary, line: 80, args: arguments]
    server = Port.open({:spawn_executable, program}, options)

    receive do
      {^server, {:data, {:eol, listening}}} ->
        {:os_pid, os_pid} = Port.info(server, :os_pid)
        {:ok, String.to_integer(listening), to_string(os_pid)}
    after
      5000 -> {:error, "#{name} says nothing"}
    end
  end
end

defmodule Tame.HTTP.Bench.Alone do
  @moduledoc false
  use Tame.HTTP.Bench.Program, ["alone"]
end

defmodule Tame.HTTP.Bench.AloneAsks do
  @moduledoc false
  use Tame.HTTP.Bench.Program, ["alone", "asks"]
end

defmodule Tame.HTTP.Bench.Floor do
  @moduledoc false
  use Tame.HTTP.Bench.Program, ["floor"]
end

defmodule Tame.HTTP.Bench.FloorAsks do
  @moduledoc false
  use Tame.HTTP.Bench.Program, ["floor", "asks"]
end

defmodule Tame.HTTP.Bench.FloorMegabyte do
  @moduledoc false
  use Tame.HTTP.Bench.Program, ["floor", "megabyte"]
end

defmodule Tame.HTTP.Bench.FloorProcess do
  @moduledoc false
  # The system calls in a thread of the VM, and a process that is asked, and may send the answers.
  @on_load :load

  def start(port, _protocol, sends) do
    {:ok, listening, _} = :proc_lib.start_link(__MODULE__, :init, [port, sends])
    {:ok, listening}
  end

  def init(port, sends) do
    :proc_lib.init_ack({:ok, begin(port, sends), self()})
    answer_all()
  end

  defp answer_all do
    receive do
      :asked -> answer()
    end

    answer_all()
  end

  def load do
    library = Path.join(System.fetch_env!("TAME_HTTP_BUILD"), "floor_vm")
    :erlang.load_nif(to_charlist(library), 0)
  end

  def begin(_port, _sends), do: :erlang.nif_error(:not_loaded)
  def answer, do: :erlang.nif_error(:not_loaded)
end

defmodule Tame.HTTP.Bench.FloorVM do
  @moduledoc false
  def protocols, do: [:h1, :h2]
  def start(port, protocol), do: Tame.HTTP.Bench.FloorProcess.start(port, protocol, 0)
end

defmodule Tame.HTTP.Bench.FloorVMSends do
  @moduledoc false
  def protocols, do: [:h1, :h2]
  def start(port, protocol), do: Tame.HTTP.Bench.FloorProcess.start(port, protocol, 1)
end
