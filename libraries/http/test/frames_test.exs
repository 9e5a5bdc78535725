defmodule Tame.HTTP.FramesTest do
  # Frames of HTTP/2 as clients get them: h2 makes longer ones, which are cut.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.Frames

  # The longest frame, in bytes, that every client accepts without a setting.
  @most 16_384
  @end_stream 1
  @end_headers 4
  @window 0x7FFF_FFFF

  # The frames of these streams until each has ended.
  defp streams(socket, ids, bytes \\ "", seen \\ [])
  defp streams(_socket, [], _bytes, seen), do: Enum.reverse(seen)

  defp streams(socket, ids, bytes, seen) do
    {{type, flags, id, payload} = frame, rest} = Frames.next(socket, bytes)
    assert byte_size(payload) <= @most
    ended? = type in [:data, :headers] and Bitwise.band(flags, @end_stream) != 0
    assert id == 0 or id in ids
    streams(socket, if(ended?, do: ids -- [id], else: ids), rest, [frame | seen])
  end

  defp body(frames, id),
    do: for({:data, _, ^id, payload} <- frames, into: "", do: payload)

  defp wide(socket) do
    :ok = :gen_tcp.send(socket, Frames.frame(:window_update, 0, 0, <<@window - 65_535::32>>))
    socket
  end

  for settings <- [[{4, @window}], [{4, @window}, {5, 16_384}], [{5, 1_000_000}, {4, @window}]] do
    test "long bodies, of several streams, to a client that takes little at once: #{inspect(settings)}" do
      bodies =
        for id <- [1, 3, 5], into: %{}, do: {id, :crypto.strong_rand_bytes(400_000 * id + id)}

      ids = Map.keys(bodies)
      handler = fn %{path: "/" <> id} -> {200, [], bodies[String.to_integer(id)]} end
      {server, port} = start(handler: handler)
      socket = Frames.connect(port, unquote(settings))
      # So writes end at any place.
      :ok = :inet.setopts(socket, recbuf: 50_000)

      gets =
        for id <- ids,
            do: Frames.frame(:headers, 0x5, id, [0x82, 0x86, 0x44, 2, "/#{id}", 0x41, 1, "a"])

      :ok = :gen_tcp.send(wide(socket), gets)
      frames = streams(socket, ids)
      for id <- ids, do: assert(body(frames, id) == bodies[id])
      balanced(server)
    end
  end

  test "long headers, then trailers" do
    long = String.duplicate("header", 10_000)

    handler = fn _ ->
      {200, [{"x-long", long}],
       {:stream, fn send -> send.("body") && {:trailers, [{"x-end", long}]} end}}
    end

    {server, port} = start(handler: handler)
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, Frames.get(1))

    frames = for {type, flags, 1, payload} <- streams(socket, [1]), do: {type, flags, payload}

    # Head and trailers end once each, by the last of their frames; what is between belongs to nobody else.
    [{:headers, first, _} | _] = frames
    assert Bitwise.band(first, @end_headers) == 0
    assert body([{:data, 0, 1, ""} | for({t, f, p} <- frames, do: {t, f, 1, p})], 1) == "body"
    assert length(for {:continuation, _, _} <- frames, do: 1) >= 2
    {output, 0} = curl(["--http2-prior-knowledge", "-D", "-", url(port)])
    assert output =~ "x-long: #{long}"
    balanced(server)
  end

  test "an opening that comes a byte at a time, and one that ends in the middle" do
    {server, port} = start([])
    settings = IO.iodata_to_binary(Frames.frame(:settings, 0, 0, <<4::16, @window::32>>))
    opening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" <> settings
    socket = connect(port)
    :inet.setopts(socket, nodelay: true)
    for <<byte <- opening>>, do: :ok = :gen_tcp.send(socket, <<byte>>)
    :ok = :gen_tcp.send(socket, Frames.get(1))
    assert body(streams(socket, [1]), 1) == "hello"

    for length <- 1..byte_size(opening) do
      socket = send_raw(port, binary_part(opening, 0, length))
      :ok = :gen_tcp.shutdown(socket, :write)
      all(socket)
    end

    balanced(server)
  end
end
