defmodule Tame.Test.FailuresAgain do
  @moduledoc false
  # Names the failed tests once more as the last words of a run, with what they said first: of a run of minutes often
  # only the end is at hand. A formatter, which collects them, and a function that prints them when all formatters
  # have ended.

  use GenServer

  @impl true
  def init(_) do
    :persistent_term.put(__MODULE__, [])
    {:ok, nil}
  end

  @impl true
  def handle_cast({:test_finished, %{state: {:failed, failures}} = test}, state) do
    :persistent_term.put(__MODULE__, [{test, failures} | :persistent_term.get(__MODULE__)])
    {:noreply, state}
  end

  def handle_cast(_, state), do: {:noreply, state}

  def print(_results) do
    for {test, failures} <- Enum.reverse(:persistent_term.get(__MODULE__)) do
      IO.puts("failed: #{inspect(test.module)}, #{test.name} (line #{test.tags.line})")
      for {kind, reason, stack} <- failures, do: IO.puts(message(kind, reason, stack))
    end
  end

  defp message(kind, reason, stack) do
    Exception.format_banner(kind, reason, stack)
    |> String.split("\n", trim: true)
    |> Enum.take(12)
    |> Enum.map_join("\n", &("    " <> String.slice(&1, 0, 200)))
  end
end
