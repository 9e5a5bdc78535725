defmodule Tame.HTTP do
  @moduledoc """
  An HTTP/1.1 and HTTP/2 server: the protocol is native, handlers are Elixir. What `:tame_http` does, with Elixir's words.

      {:ok, server} = Tame.HTTP.start(port: 8080, handler: fn _request -> {200, %{}, "hello"} end)

  In a supervisor, with a module that has `init/1` and `call/2` as plugs have:

      children = [{Tame.HTTP, port: 8080, plug: {MyApp.Router, []}}]

  Such a module gets a `Tame.HTTP.Conn`. Options are those of `:tame_http`, as a keyword list or a map.
  """

  alias Tame.HTTP.Conn

  @type server :: :tame_http.server()

  @doc "A server that belongs to nobody. It ends by `stop/1`."
  @spec start(keyword() | map()) :: {:ok, pid()} | {:error, term()}
  def start(options), do: options |> options() |> :tame_http.start()

  @doc "A server that is linked to the caller, for a supervisor."
  @spec start_link(keyword() | map()) :: {:ok, pid()} | {:error, term()}
  def start_link(options), do: options |> options() |> :tame_http.start_link()

  @doc false
  def child_spec(options), do: options |> options() |> :tame_http.child_spec()

  @doc "Stops listening, lets requests finish for `shutdown_ms` at most, and ends."
  @spec stop(server()) :: :ok
  defdelegate stop(server), to: :tame_http

  @doc "The same, with another time to finish, in ms."
  @spec drain(server(), non_neg_integer()) :: :ok
  defdelegate drain(server, ms), to: :tame_http

  @doc "The port on which it listens."
  @spec port(server()) :: :inet.port_number()
  defdelegate port(server), to: :tame_http

  @doc "What it has counted since it began."
  @spec info(server()) :: %{atom() => non_neg_integer()}
  defdelegate info(server), to: :tame_http

  @doc "From now on these paths are answered by the native half."
  @spec static(server(), map()) :: :ok
  defdelegate static(server, routes), to: :tame_http

  defp options(options) do
    case Map.pop(Map.new(options), :plug) do
      {nil, options} -> options
      {_, %{handler: _}} -> raise ArgumentError, "plug: and handler: are two answers to a request"
      {plug, options} -> Map.put(options, :handler, handler(plug))
    end
  end

  defp handler({module, argument}) when is_atom(module), do: Conn.handler(module, argument)
  defp handler(module) when is_atom(module), do: Conn.handler(module, [])

  defp handler(other) do
    raise ArgumentError, "plug: expected a module or {module, argument}, got: #{inspect(other)}"
  end
end
