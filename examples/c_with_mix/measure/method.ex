defmodule Copycat.Method do
  @moduledoc "How tame's latency lab calls our NIF."

  use Tame.Latency.Method,
    id: :copycat,
    isolation: :shared,
    data_type: "binary, copied",
    context_switch: "none"

  @impl true
  def open, do: {:ok, nil}

  @impl true
  def echo(nil, binary), do: Copycat.copy(binary)

  @impl true
  def close(nil), do: :ok
end
