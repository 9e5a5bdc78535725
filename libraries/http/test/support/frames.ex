defmodule Tame.HTTP.Test.Frames do
  @moduledoc false
  # HTTP/2 as a client writes it that keeps to no rule: single frames, RFC 9113.

  @preface "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  @types %{
    data: 0,
    headers: 1,
    priority: 2,
    rst_stream: 3,
    settings: 4,
    push_promise: 5,
    ping: 6,
    goaway: 7,
    window_update: 8,
    continuation: 9
  }

  @names Map.new(@types, fn {name, number} -> {number, name} end)

  def frame(type, flags, stream, payload) do
    payload = IO.iodata_to_binary(payload)
    [<<byte_size(payload)::24, @types[type], flags, 0::1, stream::31>>, payload]
  end

  # A connection after both sides' settings. Settings of ours: `[{id, value}]`.
  def connect(port, settings \\ []) do
    socket = Tame.HTTP.Test.Client.connect(port)
    ours = for {id, value} <- settings, do: <<id::16, value::32>>
    :ok = :gen_tcp.send(socket, [@preface, frame(:settings, 0, 0, ours)])
    {{:settings, _, _, _}, _} = next(socket, "")
    :ok = :gen_tcp.send(socket, frame(:settings, 1, 0, ""))
    socket
  end

  # GET / with nothing that HPACK would have to remember; more header fields follow.
  def get(stream, more \\ []), do: frame(:headers, 0x5, stream, [fields(), more])

  def fields, do: [0x82, 0x86, 0x84, 0x41, 1, "a"]

  # The same for a path of up to 126 bytes.
  def get_path(stream, path), do: frame(:headers, 0x5, stream, at_path(0x82, path))

  # A POST whose body follows.
  def post(stream, path \\ "/", more \\ []),
    do: frame(:headers, 0x4, stream, [at_path(0x83, path), more])

  defp at_path(method, path), do: [method, 0x86, 0x04, byte_size(path), path, 0x41, 1, "a"]

  # CANCEL.
  def reset(stream), do: frame(:rst_stream, 0, stream, <<8::32>>)

  # What the server says of a stream, and in which order: the first bytes of its frames with their types.
  def of(frames, stream), do: for({type, _, ^stream, payload} <- frames, do: {type, payload})

  # An indexed :status.
  def statuses(frames) do
    known = %{0x88 => 200, 0x89 => 204, 0x8D => 404, 0x8E => 500}
    for {:headers, _, stream, <<first, _::binary>>} <- frames, do: {stream, known[first] || first}
  end

  # A literal that is not remembered. Names and values up to 126 bytes.
  def literal(name, value), do: [0, byte_size(name), name, byte_size(value), value]

  # The first frame in the bytes, or of those that come: {{type, flags, stream, payload}, rest}; :closed.
  def next(socket, bytes, ms \\ 10_000)

  def next(
        _socket,
        <<size::24, type, flags, _::1, stream::31, payload::binary-size(size), rest::binary>>,
        _ms
      ),
      do: {{Map.get(@names, type, type), flags, stream, payload}, rest}

  def next(socket, bytes, ms) do
    case :gen_tcp.recv(socket, 0, ms) do
      {:ok, more} -> next(socket, bytes <> more, ms)
      {:error, :timeout} -> :silent
      {:error, _} -> :closed
    end
  end

  # All frames until the server closes, or says nothing for so long: {:closed | :silent, frames}. Until enough have come, as the
  # function says, it may be silent for longer: the machine may be busy.
  def all(socket, ms \\ 10_000, enough \\ fn _frames -> true end),
    do: all(socket, "", ms, enough, [])

  defp all(socket, bytes, ms, enough, seen) do
    case next(socket, bytes, if(enough.(seen), do: ms, else: 20_000)) do
      {frame, rest} -> all(socket, rest, ms, enough, [frame | seen])
      ended -> {ended, Enum.reverse(seen)}
    end
  end

  # The error codes of the GOAWAY frames among these.
  def goaway(frames), do: for({:goaway, _, _, <<_::32, code::32, _::binary>>} <- frames, do: code)

  # Sends until the server has closed, or so often: what was sent, in bytes.
  def flood(socket, bytes, times) do
    Enum.reduce_while(1..times, 0, fn _, sent ->
      case :gen_tcp.send(socket, bytes) do
        :ok -> {:cont, sent + IO.iodata_length(bytes)}
        {:error, _} -> {:halt, sent}
      end
    end)
  end
end
