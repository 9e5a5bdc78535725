defmodule Tame.TermScenarios do
  @moduledoc "Terms of every size class through an isolated library and back, in a throw-away emulator."

  alias Tame.Test.SizeClasses

  @doc "Isolates tame_echo under the options. Returns the names of the classes, in order."
  def start(options) do
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(:tame_echo, options)
    all = SizeClasses.all()
    :persistent_term.put(__MODULE__, List.to_tuple(all))
    Enum.map(all, &elem(&1, 0))
  end

  @doc "The class number `index` there and back, by a few processes at once: :equal, or what it came to."
  def echo(index) do
    {_, term} = elem(:persistent_term.get(__MODULE__), index)
    echo_all(List.duplicate(term, 3))
  end

  @doc "Random terms from the seed: :equal, or the first seed whose term came to something else, and that."
  def echo_random(seed, count, budget) do
    Enum.find_value(seed..(seed + count - 1), :equal, fn seed ->
      case echo_all(List.duplicate(SizeClasses.random(seed, budget), 1)) do
        :equal -> nil
        other -> {seed, budget, other}
      end
    end)
  end

  defp echo_all(terms) do
    tasks = for term <- terms, do: Task.async(fn -> come_to(term) end)
    Enum.find(Task.await_many(tasks, 600_000), :equal, &(&1 != :equal))
  end

  # A refusal is right where it says why.
  defp come_to(term) do
    # By value, so that the task's copy is what goes and what is compared.
    back = :tame_echo.echo_inline(term)
    if back === term, do: :equal, else: {:other, short(back)}
  catch
    :error, {:tame, {:reply_too_large, %{bytes: _}}} -> :equal
    kind, reason -> {kind, short(reason)}
  end

  defp short(term), do: inspect(term, limit: 10, printable_limit: 100)
end
