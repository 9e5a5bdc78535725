defmodule Tame.Latency.Methods.Isolated do
  @moduledoc "An unmodified NIF library isolated by `tame:isolate/1`: an OS process, reached by shared memory."
  use Tame.Latency.Method,
    id: :isolated,
    isolation: :process,
    data_type: "Erlang term",
    context_switch: "OS process, shared memory"

  @module :tame_echo_isolated

  @impl true
  def open do
    with {:ok, _} <- Application.ensure_all_started(:tame),
         :ok <- :tame.isolate(@module) do
      {:ok, nil}
    else
      {:error, {_, text}} -> {:error, to_string(text)}
    end
  end

  @impl true
  def echo(nil, term), do: :tame_echo_isolated.echo(term)

  @impl true
  def close(nil), do: :tame.restore(@module)
end
