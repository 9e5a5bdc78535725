defmodule Tame.Progress do
  @moduledoc """
  Shows on a terminal what a long run is doing, how far it is and how long it will take. Where the output is
  not a terminal, a run of several parts says which of them begins.
  """

  @doc """
  A function that a lab calls with `%{what: text, done: n, total: m}` before each part of its work.

  The time left is what the finished parts took, scaled; it is shown from the second part of each
  kind on, when it means something.
  """
  @spec printer(boolean()) :: (map() -> :ok)
  def printer(terminal? \\ terminal?())

  def printer(false), do: fn _ -> :ok end

  def printer(true) do
    started = System.monotonic_time(:millisecond)

    fn step ->
      elapsed_ms = System.monotonic_time(:millisecond) - started
      # Standard error, so that what a shell redirects stays clean.
      IO.write(:stderr, ["\r", IO.ANSI.clear_line(), line(step, elapsed_ms)])
    end
  end

  @doc "Says that a part of some minutes begins, on a line of its own; a terminal shows more than that by `printer/1`."
  @spec part(String.t(), boolean()) :: :ok
  def part(what, terminal? \\ terminal?())
  def part(_what, true), do: :ok
  def part(what, false), do: IO.puts(:stderr, what)

  @doc "Clears the progress line; call it before printing results."
  @spec clear(boolean()) :: :ok
  def clear(terminal? \\ terminal?())
  def clear(false), do: :ok
  def clear(true), do: IO.write(:stderr, ["\r", IO.ANSI.clear_line()])

  # Elixir knows that of standard output only, and the line goes to standard error.
  defp terminal? do
    with true <- IO.ANSI.enabled?(), {:ok, file} <- File.read_link("/proc/self/fd/2") do
      file =~ ~r{^/dev/(pts/|tty|console)}
    else
      _ -> false
    end
  end

  @doc """
  The line as text.

      iex> Tame.Progress.line(%{what: "port, round 2", done: 5, total: 20}, 10_000)
      "25 %  port, round 2, about 30 s left"
  """
  @spec line(map(), non_neg_integer()) :: String.t()
  def line(%{what: what, done: done, total: total}, elapsed_ms) do
    left = if done > 0, do: ", about #{left_s(done, total, elapsed_ms)} s left", else: ""
    "#{div(100 * done, total)} %  #{what}#{left}"
  end

  defp left_s(done, total, elapsed_ms), do: round(elapsed_ms * (total - done) / done / 1000)
end
