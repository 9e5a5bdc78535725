defmodule Tame.Audit.Baseline do
  @moduledoc """
  Findings that a project has accepted for now: the file of `--baseline`, beside that of `--ci`.

      # tame.baseline.exs
      [
        {"my_nif:encode/1", :blocks, date: "2026-11-22", reason: "inputs are below 10 KB; my_nif issue 41"},
        {"my_nif:resize/2", :leaks, date: "2026-11-22", reason: "64 bytes a call, restarted each night"}
      ]

  Each entry names a check as the file of `--ci` does, one verdict, the day on which it was accepted, and why. The check
  holds with that verdict. An entry whose verdict is not found any more, or whose check is not made, is stale: `--ci`
  names it, and the exit status stays what it is, because on a busy machine a verdict near its limit comes and goes.

  What a function is meant to do stands in the file of `--ci` (`allow:`); what it is to be rid of stands here.
  """

  alias Tame.Audit.{Policy, Verdict}

  @type entry :: %{text: String.t(), verdict: atom(), date: Date.t(), reason: String.t()}

  @keys [:date, :reason]

  @doc """
  Reads the file of a switch; none without a path. The error is one line that names the file and the entry. `allowable` are
  the findings that can be accepted.
  """
  @spec read(nil | Path.t(), String.t(), [atom()]) :: {:ok, [entry()]} | {:error, String.t()}
  def read(path, switch \\ "--baseline", allowable \\ Verdict.names(:allowable))
  def read(nil, _switch, _allowable), do: {:ok, []}

  def read(path, switch, allowable) do
    with {:ok, entries} <- Policy.list(path, switch, "accepted findings") do
      Policy.each(entries, &entry(&1, allowable), "#{path}: ")
    end
  end

  defp entry({text, verdict, options}, allowable) when is_binary(text) do
    with :ok <- verdict(text, verdict, allowable),
         :ok <- keys(text, options),
         {:ok, date} <- date(text, options[:date]),
         {:ok, reason} <- reason(text, options[:reason]) do
      {:ok, %{text: text, verdict: verdict, date: date, reason: reason}}
    end
  end

  defp entry(other, _allowable) do
    {:error, "expected {target, verdict, date: ..., reason: ...}, got: #{inspect(other, limit: 5)}"}
  end

  defp verdict(text, verdict, allowable) do
    if verdict in allowable,
      do: :ok,
      else:
        {:error,
         "#{text}: unknown verdict #{inspect(verdict, limit: 5)}, expected one of: #{Enum.join(allowable, ", ")}"}
  end

  defp keys(text, options) do
    case Keyword.keyword?(options) && Keyword.keys(options) -- @keys do
      [] ->
        :ok

      false ->
        {:error, "#{text}: expected date: and reason:, got: #{inspect(options, limit: 5)}"}

      [key | _] ->
        {:error, "#{text}: unknown option #{key}, expected: #{Enum.join(@keys, ", ")}"}
    end
  end

  defp date(_text, %Date{} = date), do: {:ok, date}

  defp date(text, iso) do
    with true <- is_binary(iso), {:ok, date} <- Date.from_iso8601(iso) do
      {:ok, date}
    else
      _ ->
        {:error, "#{text}: date: expected a day as \"2026-11-22\", got: #{inspect(iso, limit: 5)}"}
    end
  end

  defp reason(text, reason) do
    if is_binary(reason) and String.trim(reason) != "",
      do: {:ok, reason},
      else:
        {:error, "#{text}: reason: expected why it is accepted, got: #{inspect(reason, limit: 5)}"}
  end

  @doc """
  The verdicts that are accepted of a check.

      iex> entry = %{text: "m:f/1", verdict: :blocks, date: ~D[2026-11-22], reason: "small"}
      iex> Tame.Audit.Baseline.accepted([entry], "m:f/1")
      [:blocks]
  """
  @spec accepted([entry()], String.t()) :: [atom()]
  def accepted(baseline, text), do: for(%{text: ^text, verdict: verdict} <- baseline, do: verdict)

  @doc """
  A line for each stale entry, from the verdicts that each check found.

      iex> entry = %{text: "m:f/1", verdict: :blocks, date: ~D[2026-11-22], reason: "small"}
      iex> Tame.Audit.Baseline.stale([entry], [{"m:f/1", [:blocks, :leaks]}])
      []
      iex> Tame.Audit.Baseline.stale([entry], [{"m:f/1", [:well_behaved]}])
      ["m:f/1: blocks, accepted on 2026-11-22 (small), was not found"]
      iex> Tame.Audit.Baseline.stale([entry], [])
      ["m:f/1: blocks, accepted on 2026-11-22 (small), is of no check"]
  """
  @spec stale([entry()], [{String.t(), [atom()]}]) :: [String.t()]
  def stale(baseline, found) do
    for entry <- baseline, why = stale_why(entry, found) do
      "#{entry.text}: #{entry.verdict}, accepted on #{entry.date} (#{entry.reason}), #{why}"
    end
  end

  defp stale_why(%{text: text, verdict: verdict}, found) do
    case for {^text, verdicts} <- found, do: verdicts do
      [] -> "is of no check"
      lists -> if verdict in List.flatten(lists), do: nil, else: "was not found"
    end
  end
end
