defmodule Tame.Tcp.Bench.Bare do
  @moduledoc false
  # The floor: bare_nif.c, and the waiting for it.
  @on_load :load

  def load, do: :erlang.load_nif(~c"build/bare_nif", 0)

  def connect(_port, _congestion), do: :erlang.nif_error(:not_loaded)
  def send(_socket, _bytes, _ref), do: :erlang.nif_error(:not_loaded)
  def recv(_socket, _size, _ref), do: :erlang.nif_error(:not_loaded)
  def close(_socket), do: :erlang.nif_error(:not_loaded)

  def send_all(socket, bytes) do
    ref = make_ref()

    case send(socket, bytes, ref) do
      :ok ->
        :ok

      :wait ->
        receive(do: ({:bare, ^ref} -> send_all(socket, bytes)))

      {:wait, sent} ->
        receive do
          {:bare, ^ref} -> send_all(socket, binary_part(bytes, sent, byte_size(bytes) - sent))
        end
    end
  end

  def receive_all(socket, size) do
    ref = make_ref()

    case recv(socket, size, ref) do
      :wait -> receive(do: ({:bare, ^ref} -> receive_all(socket, size)))
      bytes -> {:ok, bytes}
    end
  end
end
