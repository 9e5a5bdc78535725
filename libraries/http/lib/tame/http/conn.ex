defmodule Tame.HTTP.Conn do
  @moduledoc """
  A request and its answer, for modules written as plugs are, without the package plug:

      defmodule Hello do
        import Tame.HTTP.Conn

        def init(options), do: options

        def call(conn, greeting),
          do: conn |> put_resp_header("content-type", "text/plain") |> send_resp(200, greeting)
      end

  Fields have the names of `Plug.Conn`'s. It is no `Plug.Conn`: code that matches on that struct does not take it.
  """

  defstruct method: nil,
            request_path: nil,
            path_info: [],
            query_string: "",
            host: nil,
            scheme: :http,
            remote_ip: nil,
            req_headers: [],
            body: "",
            status: nil,
            resp_headers: [],
            resp_body: nil,
            state: :unset,
            halted: false,
            assigns: %{},
            request: nil

  @type t :: %__MODULE__{}

  @doc false
  def handler(module, argument) do
    for {name, arity} <- [init: 1, call: 2],
        not (Code.ensure_loaded?(module) and function_exported?(module, name, arity)) do
      raise ArgumentError, "plug: #{inspect(module)} has no function #{name}/#{arity}"
    end

    options = module.init(argument)

    fn request ->
      case module.call(from(request), options) do
        %__MODULE__{state: :sent, status: status, resp_headers: headers, resp_body: body} ->
          {status, headers, body}

        other ->
          raise "#{inspect(module)}.call/2 has sent nothing: #{inspect(other, limit: 10)}"
      end
    end
  end

  @doc "The struct for a request of `:tame_http`."
  @spec from(:tame_http.request()) :: t()
  def from(%{peer: {ip, _}} = request) do
    %__MODULE__{
      method: request.method,
      request_path: request.path,
      path_info: String.split(request.path, "/", trim: true),
      query_string: request.query,
      host: host(:tame_http.header("host", request, nil)),
      scheme: request.scheme,
      remote_ip: ip,
      req_headers: request.headers,
      body: request.body,
      request: request
    }
  end

  # Without its port.
  defp host(nil), do: nil
  defp host(host), do: Regex.replace(~r/:\d*\z/, host, "")

  @doc "The values of a header of the request, by its name in lower case."
  @spec get_req_header(t(), binary()) :: [binary()]
  def get_req_header(conn, name), do: for({^name, value} <- conn.req_headers, do: value)

  @doc "A header of the answer, in the place of those of that name."
  @spec put_resp_header(t(), binary(), iodata()) :: t()
  def put_resp_header(conn, name, value) do
    others = for {other, _} = header <- conn.resp_headers, not same?(other, name), do: header
    %{conn | resp_headers: others ++ [{name, value}]}
  end

  defp same?(one, other), do: lower(one) == lower(other)
  defp lower(name), do: name |> IO.iodata_to_binary() |> String.downcase()

  @doc "A value for those that come behind."
  @spec assign(t(), atom(), term()) :: t()
  def assign(conn, name, value), do: %{conn | assigns: Map.put(conn.assigns, name, value)}

  @doc "The answer: iodata, `{:stream, fun}` or `{:file, path}`."
  @spec send_resp(t(), 200..599, iodata() | tuple()) :: t()
  def send_resp(conn, status, body),
    do: %{conn | status: status, resp_body: body, state: :sent}

  @doc "Says to those that come behind that there is nothing left to do."
  @spec halt(t()) :: t()
  def halt(conn), do: %{conn | halted: true}
end
