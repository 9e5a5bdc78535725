defmodule Tame.Latency.Methods.BeamCall do
  @moduledoc "A plain Erlang function call: the floor of the meter itself, no native code at all."

  use Tame.Latency.Method,
    id: :beam_call,
    isolation: :none,
    data_type: "Erlang term",
    context_switch: "none"

  @impl true
  def open, do: {:ok, nil}

  @impl true
  def echo(nil, term), do: term

  @impl true
  def close(nil), do: :ok
end

defmodule Tame.Latency.Methods.BeamProcess do
  @moduledoc "A message to an Erlang process and back: what the VM's own hand-over costs."

  use Tame.Latency.Method,
    id: :beam_process,
    isolation: :none,
    data_type: "Erlang term",
    context_switch: "process"

  @impl true
  def open do
    {:ok, spawn_link(&serve/0)}
  end

  @impl true
  def echo(pid, term) do
    # The server is linked: if it dies, so does the caller, and nobody waits for ever.
    ref = make_ref()
    send(pid, {self(), ref, term})

    receive do
      {^ref, back} -> back
    end
  end

  @impl true
  def close(pid) do
    ref = Process.monitor(pid)
    Process.unlink(pid)
    Process.exit(pid, :kill)

    receive do
      {:DOWN, ^ref, :process, ^pid, _} -> :ok
    end
  end

  defp serve do
    receive do
      {from, ref, term} -> send(from, {ref, term})
    end

    serve()
  end
end
