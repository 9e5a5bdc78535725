defmodule Tame.Audit.Gate do
  @moduledoc """
  The CI gate: a file that says what to check, what falls short of it, and JUnit's XML of that.

      # tame.audit.exs
      [
        # Its libraries can be read.
        "my_app",
        # Called; every verdict but well-behaved falls short.
        {"my_nif:encode/1", input: "term", budget: "1ms"},
        # Only up to that size, and dirty is what it is meant to be.
        {"my_nif:resize/2", input_file: "bench/resize.exs", budget: "50ms", up_to: 4_000_000, allow: [:dirty]}
      ]
  """

  alias Tame.Audit.{Input, Target, Verdict}
  alias Tame.Contention.Plan

  @keys [:input, :input_file, :budget, :limit, :up_to, :allow]
  @allow [:blocks, :under_charges, :dirty, :ignores_kill]

  @typedoc "A check of the file: its line, what to look at, and which verdicts are as they should be."
  @type check :: %{text: String.t(), check: Tame.Audit.check(), allow: [atom()]}

  @doc "Reads the file. The error is one line that names it and the entry."
  @spec read(Path.t()) :: {:ok, [check()]} | {:error, String.t()}
  def read(path) do
    with true <- File.regular?(path) || {:error, "--ci #{path}: there is no such file"},
         {:ok, entries} <- evaluate(path) do
      each(entries, &entry/1, "#{path}: ")
    end
  end

  @doc "The same for what stands on a command line."
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

  defp evaluate(path) do
    case Code.eval_file(path) do
      {[_ | _] = entries, _} -> {:ok, entries}
      {other, _} -> {:error, "#{path}: expected a list of checks, got: #{inspect(other, limit: 5)}"}
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
         {:ok, budget_us} <- time(options[:budget]),
         {:ok, limit_us} <- time(options[:limit]),
         :ok <- allowed(word, options[:allow] || []),
         :ok <- size(word, options[:up_to]) do
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
        {:error, "#{word}: what is it to be called with? --input GENERATOR or --input-file FILE"}

      {text, nil} ->
        Input.parse(to_string(text))

      {nil, path} ->
        Input.file(path)

      {_, _} ->
        {:error, "#{word}: --input and --input-file: expected one of the two"}
    end
  end

  defp input(word, _static, options) do
    case Keyword.take(options, [:input, :input_file]) do
      [] -> {:ok, nil}
      _ -> {:error, "#{word}: an input goes with a function, as module:function/arity"}
    end
  end

  defp time(nil), do: {:ok, nil}

  defp time(text) do
    with {:ok, [us]} <- Plan.parse_durations([to_string(text)]), do: {:ok, us}
  end

  defp allowed(word, allow) do
    case is_list(allow) && allow -- @allow do
      [] ->
        :ok

      false ->
        {:error, "#{word}: allow: expected a list"}

      [other | _] ->
        {:error,
         "#{word}: allow: unknown verdict #{inspect(other)}, expected some of: #{Enum.join(@allow, ", ")}"}
    end
  end

  defp size(_word, nil), do: :ok
  defp size(_word, bytes) when is_integer(bytes) and bytes > 0, do: :ok

  defp size(word, other),
    do: {:error, "#{word}: up_to: expected a whole number above 0, got: #{inspect(other)}"}

  # ---- judging --------------------------------------------------------------------------------------

  @doc """
  What became of a check: the line that says in what it falls short, none where it holds. `result` is that check's own.
  """
  @spec shortfalls(check(), Tame.Audit.result()) :: [String.t()]
  def shortfalls(%{text: text, allow: allow}, result) do
    verdicts =
      for target <- result.targets,
          verdict <- target.verdicts,
          Verdict.name(verdict) not in [:well_behaved, :hangs, :crashes | allow],
          do: {Verdict.text(verdict), "budget #{Verdict.budget_text(target.budget_us)}"}

    failures =
      for failure <- result.failures,
          do: String.replace_prefix(failure, text, "") |> String.trim_leading(": ")

    budget = verdicts |> Enum.map(&elem(&1, 1)) |> Enum.uniq()

    case Enum.map(verdicts, &elem(&1, 0)) ++ failures ++ budget do
      [] -> []
      parts -> ["#{text}: " <> (parts |> Enum.map(&String.trim/1) |> Enum.join("; "))]
    end
  end

  @doc "JUnit's XML, a case for each check: `{text, seconds, shortfalls}`."
  @spec junit([{String.t(), float(), [String.t()]}]) :: iodata()
  def junit(cases) do
    failed = Enum.count(cases, fn {_, _, lines} -> lines != [] end)
    total = cases |> Enum.map(&elem(&1, 1)) |> Enum.sum()

    [
      ~s(<?xml version="1.0" encoding="UTF-8"?>\n),
      ~s(<testsuites tests="#{length(cases)}" failures="#{failed}" time="#{seconds(total)}">\n),
      ~s(<testsuite name="tame.audit" tests="#{length(cases)}" failures="#{failed}" errors="0" time="#{seconds(total)}">\n),
      Enum.map(cases, &junit_case/1),
      "</testsuite>\n</testsuites>\n"
    ]
  end

  defp junit_case({text, time, lines}) do
    failures =
      for line <- lines,
          do: [~s(<failure message="), escape(line), ~s(">), escape(line), "</failure>\n"]

    [
      ~s(<testcase classname="tame.audit" name="),
      escape(text),
      ~s(" time="#{seconds(time)}">\n),
      failures,
      "</testcase>\n"
    ]
  end

  defp seconds(time), do: :erlang.float_to_binary(time / 1, decimals: 3)

  defp escape(text), do: Tame.Report.HTML.escape(text)
end
