defmodule Mix.Tasks.Tame.Audit do
  use Mix.Task

  @shortdoc "Says of any NIF, without its source, what it can do and whether it blocks"

  @moduledoc """
  Says of any NIF, without its source, what it can do and whether it blocks.
  """

  alias Tame.{Audit, Options, Output, Progress, SystemInfo}
  alias Tame.Audit.{Diff, Format, Gate}

  @switches [
    all: :flag,
    input: :string,
    input_file: :string,
    up_to: :pos_integer,
    budget: :string,
    limit: :string,
    diff: :string,
    json: :string,
    ci: :string,
    junit: :string
  ]

  # What says how a function is called.
  @calling [:input, :input_file, :up_to, :budget, :limit]

  @usage "nothing to audit, expected: mix tame.audit MODULE | FILE.so | APPLICATION | FOLDER | --all | " <>
           "'module:function/1' --input GENERATOR | --ci FILE"

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    # All that can be refused is refused before anything is called.
    with {:ok, options, words} <- Options.parse_words(argv, @switches),
         {:ok, old} <- old(options[:diff]),
         :ok <- writable(options[:json]),
         :ok <- writable(options[:junit]),
         {:ok, checks} <- checks(words, options),
         :ok <- Tame.Native.build(),
         system = SystemInfo.collect(Enum.join(["mix tame.audit" | argv], " ")),
         {:ok, result} <- audit(checks, system, options) do
      finish(result, old, options)
    else
      {:error, message} -> Mix.raise(message)
    end
  end

  # ---- what to look at ------------------------------------------------------------------------------

  defp checks(words, options) do
    case {words, options[:all], options[:ci]} do
      {[], nil, nil} ->
        {:error, @usage}

      {[], true, nil} ->
        with :ok <- alone("--all", options, @calling), do: {:ok, [all()]}

      {[], nil, path} ->
        with :ok <- alone("--ci", options, @calling ++ [:diff]), do: Gate.read(path)

      {[], true, _} ->
        {:error, "--all --ci: expected one of the two"}

      {[word | _], true, _} ->
        {:error, "--all #{word}: expected one of the two"}

      {[word | _], _, path} when path != nil ->
        {:error, "--ci #{path} #{word}: expected one of the two"}

      {words, nil, nil} ->
        named(words, options)
    end
  end

  defp all, do: %{text: "--all", check: %{target: :all}, allow: []}

  defp named(words, options) do
    with :ok <- junit(options) do
      Gate.each(words, &Gate.check(&1, Keyword.take(options, @calling)))
    end
  end

  defp junit(options) do
    if options[:junit], do: {:error, "--junit goes with --ci"}, else: :ok
  end

  defp alone(switch, options, others) do
    case Enum.filter(Keyword.keys(options), &(&1 in others)) do
      [] ->
        :ok

      [other | _] ->
        {:error, "--#{String.replace("#{other}", "_", "-")}: does not go with #{switch}"}
    end
  end

  # ---- looking --------------------------------------------------------------------------------------

  defp audit(checks, system, options) do
    progress = Progress.printer()

    if options[:ci] do
      gate(checks, system, progress, options)
    else
      with {:ok, result} <- Audit.run(Enum.map(checks, & &1.check), system, progress) do
        Progress.clear()
        result |> Format.text() |> IO.write()
        {:ok, result}
      end
    end
  end

  # Each check by itself, so that what is wrong with one is that one's.
  defp gate(checks, system, progress, options) do
    {cases, results} =
      checks
      |> Enum.map(fn check ->
        started = System.monotonic_time(:millisecond)
        result = one(check, system, progress)
        seconds = (System.monotonic_time(:millisecond) - started) / 1000
        Progress.clear()
        {{check.text, seconds, Gate.shortfalls(check, result)}, result}
      end)
      |> Enum.unzip()

    for {text, seconds, lines} <- cases do
      if lines == [],
        do: IO.puts("holds  #{text}  #{:erlang.float_to_binary(seconds, decimals: 1)} s")
    end

    keep(options[:junit], Gate.junit(cases))

    {:ok,
     %{
       system: system,
       libraries: results |> Enum.flat_map(& &1.libraries) |> Enum.uniq_by(&{&1.module, &1.path}),
       targets: Enum.flat_map(results, & &1.targets),
       notes: [],
       failures: Enum.flat_map(cases, &elem(&1, 2))
     }}
  end

  defp one(check, system, progress) do
    case Audit.run([check.check], system, progress) do
      {:ok, result} -> result
      {:error, why} -> %{libraries: [], targets: [], notes: [], failures: [why]}
    end
  end

  # ---- telling --------------------------------------------------------------------------------------

  defp finish(result, old, options) do
    if old, do: result |> Format.diff(old) |> IO.write()
    keep(options[:json], Format.json(result))

    for failure <- result.failures, do: Mix.shell().error(failure)
    if result.failures != [], do: exit({:shutdown, 1})
    :ok
  end

  defp old(nil), do: {:ok, nil}
  defp old(path), do: Diff.read(path)

  defp writable(nil), do: :ok
  defp writable(path), do: Output.check(path)

  defp keep(nil, _data), do: :ok

  defp keep(path, data) do
    with {:error, message} <- Output.write(path, data), do: Mix.raise(message)
  end
end
