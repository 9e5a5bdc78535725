defmodule Tame.Audit.Policy do
  @moduledoc """
  What a project demands of its NIFs: the file of `--ci`, and where a check falls short of it.

      # tame.audit.exs
      [
        # The application's libraries can be read.
        "my_app",
        # Called; the check falls short with every verdict other than well-behaved.
        {"my_nif:encode/1", input: "term", budget: "1ms"},
        # Called on at most 4 MB; this function is meant to be dirty.
        {"my_nif:resize/2", input_file: "bench/resize.exs", budget: "50ms", up_to: 4_000_000, allow: [:dirty]}
      ]

  A check that could not be measured falls short too: where the function raises from some size on, where `up_to` is
  not reached in time (`inconclusive`), and where it could not be seen whether it leaks, or what becomes of a killed
  caller (`not_measured`). What is accepted for now, and is to be mended, is a matter of
  `Tame.Audit.Baseline`.
  """

  alias Tame.Audit.{Baseline, Input, JUnit, Target, Verdict}
  alias Tame.{Duration, OtherLoad}

  @keys [:input, :input_file, :budget, :limit, :up_to, :allow]

  @typedoc "A check: its target as text, what to audit, and the verdicts that are allowed."
  @type check :: %{text: String.t(), check: Tame.Audit.check(), allow: [atom()]}

  @doc "Reads the file. The error is one line that names it and the entry."
  @spec read(Path.t()) :: {:ok, [check()]} | {:error, String.t()}
  def read(path) do
    with {:ok, entries} <- list(path, "--ci", "checks"), do: each(entries, &entry/1, "#{path}: ")
  end

  @doc "The list that is the value of the Elixir file that `switch` names; `of` says what is in it."
  @spec list(Path.t(), String.t(), String.t()) :: {:ok, [term()]} | {:error, String.t()}
  def list(path, switch, of) do
    with :ok <- Input.regular(path, switch), do: evaluate(path, of)
  end

  @doc "The check of a target and its options, as a command line has them."
  @spec check(String.t(), keyword()) :: {:ok, check()} | {:error, String.t()}
  def check(word, options), do: entry({word, options})

  @doc "Applies `fun` to each; the first error, after `prefix`, is the answer."
  @spec each([term()], (term() -> {:ok, term()} | {:error, String.t()}), String.t()) ::
          {:ok, [term()]} | {:error, String.t()}
  def each(all, fun, prefix \\ "") do
    Enum.reduce_while(all, {:ok, []}, fn one, {:ok, done} ->
      case fun.(one) do
        {:ok, value} -> {:cont, {:ok, done ++ [value]}}
        {:error, why} -> {:halt, {:error, prefix <> why}}
      end
    end)
  end

  defp evaluate(path, of) do
    case Code.eval_file(path) do
      {[_ | _] = entries, _} -> {:ok, entries}
      {other, _} -> {:error, "#{path}: expected a list of #{of}, got: #{inspect(other, limit: 5)}"}
    end
  rescue
    error -> {:error, "#{path}: #{error |> Exception.message() |> String.split("\n") |> hd()}"}
  catch
    kind, reason -> {:error, "#{path}: #{kind} #{inspect(reason, limit: 5)}"}
  end

  defp entry(word) when is_binary(word), do: entry({word, []})

  defp entry({word, options}) when is_binary(word) and is_list(options) do
    with :ok <- known(word, options),
         {:ok, target} <- Target.parse(word),
         {:ok, input} <- input(word, target, options),
         {:ok, budget_us} <- time("budget", options[:budget]),
         {:ok, limit_us} <- time("limit", options[:limit]),
         :ok <- allowed(word, options[:allow] || []),
         :ok <- size(word, options[:up_to]),
         :ok <- reaches(word, input, options[:up_to]) do
      check = %{
        target: target,
        input: input,
        budget_us: budget_us,
        limit_ms: limit_us && max(1, div(limit_us, 1000)),
        up_to: options[:up_to]
      }

      {:ok, %{text: word, check: check, allow: options[:allow] || []}}
    end
  end

  defp entry(other),
    do: {:error, "expected a target or {target, options}, got: #{inspect(other, limit: 5)}"}

  defp known(word, options) do
    case Keyword.keyword?(options) && Keyword.keys(options) -- @keys do
      [] ->
        :ok

      false ->
        {:error, "#{word}: expected options as a keyword list, got: #{inspect(options, limit: 5)}"}

      [key | _] ->
        {:error, "#{word}: unknown option #{key}, expected some of: #{Enum.join(@keys, ", ")}"}
    end
  end

  defp input(word, {:function, _}, options) do
    case {options[:input], options[:input_file]} do
      {nil, nil} ->
        {:error,
         "#{word}: nothing to call it with, expected --input GENERATOR or --input-file FILE"}

      {text, nil} ->
        Input.parse(to_string(text))

      {nil, path} ->
        Input.file(path)

      {_, _} ->
        {:error, "#{word}: --input and --input-file: expected one of the two"}
    end
  end

  defp input(word, _static, options) do
    case Keyword.keys(options) -- [:allow] do
      [] -> {:ok, nil}
      [key | _] -> {:error, "#{word}: #{key} goes with a function, as module:function/arity"}
    end
  end

  defp time(_name, nil), do: {:ok, nil}
  defp time(name, text), do: Duration.parse(to_string(text), name)

  defp allowed(word, allow) do
    allowable = Verdict.names(:allowable)

    case is_list(allow) && allow -- allowable do
      [] ->
        :ok

      false ->
        {:error, "#{word}: allow: expected a list"}

      [other | _] ->
        {:error,
         "#{word}: allow: unknown verdict #{inspect(other)}, expected some of: #{Enum.join(allowable, ", ")}"}
    end
  end

  defp size(_word, nil), do: :ok
  defp size(_word, bytes) when is_integer(bytes) and bytes > 0, do: :ok

  defp size(word, other),
    do: {:error, "#{word}: up_to: expected a whole number above 0, got: #{inspect(other)}"}

  defp reaches(_word, nil, _up_to), do: :ok
  defp reaches(word, input, up_to), do: Input.reaches(input, word, up_to)

  # ---- judging --------------------------------------------------------------------------------------

  # The line that says where a check falls short; none where it holds. `result` is what that check alone found.
  defp shortfalls(%{text: text, allow: allow}, result) do
    verdicts =
      for target <- result.targets,
          verdict <- target.verdicts,
          Verdict.name(verdict) in (Verdict.names(:allowable) -- allow),
          do: {Verdict.text(verdict), "budget #{Duration.text(target.budget_us)}"}

    failures =
      for failure <- result.failures,
          do: String.replace_prefix(failure, text, "") |> String.trim_leading(": ")

    budget = verdicts |> Enum.map(&elem(&1, 1)) |> Enum.uniq()

    case Enum.map(verdicts, &elem(&1, 0)) ++ failures ++ budget do
      [] -> []
      parts -> ["#{text}: " <> (parts |> Enum.map(&String.trim/1) |> Enum.join("; "))]
    end
  end

  @doc """
  Runs each check by itself, so that what is wrong with one is that one's. `baseline` is what is accepted besides;
  `progress` is told before each size, and `done` after each check. Returns the outcomes, what is stale of the baseline,
  and what all checks found as one result.
  """
  @spec judge([check()], [Baseline.entry()], keyword(), (map() -> any()), (() -> any())) ::
          {[JUnit.outcome()], stale :: [String.t()], Tame.Audit.result()}
  def judge(checks, baseline, system, progress, done \\ fn -> :ok end) do
    load = OtherLoad.start()

    {outcomes, results} =
      checks
      |> Enum.map(fn check ->
        started = System.monotonic_time(:millisecond)
        result = audit(check, system, progress)
        seconds = (System.monotonic_time(:millisecond) - started) / 1000
        done.()
        allow = check.allow ++ Baseline.accepted(baseline, check.text)
        {{check.text, seconds, shortfalls(%{check | allow: allow}, result)}, result}
      end)
      |> Enum.unzip()

    found =
      for {check, result} <- Enum.zip(checks, results),
          do: {check.text, for(t <- result.targets, v <- t.verdicts, do: Verdict.name(v))}

    all = %{
      libraries: results |> Enum.flat_map(& &1.libraries) |> Enum.uniq_by(&{&1.module, &1.path}),
      targets: Enum.flat_map(results, & &1.targets),
      notes: [],
      failures: Enum.flat_map(outcomes, &elem(&1, 2))
    }

    {outcomes, Baseline.stale(baseline, found), Tame.Audit.over(all, system, load)}
  end

  defp audit(check, system, progress) do
    case Tame.Audit.run([check.check], system, progress) do
      {:ok, result} -> result
      {:error, why} -> %{libraries: [], targets: [], notes: [], failures: [why]}
    end
  end
end
