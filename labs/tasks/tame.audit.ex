defmodule Mix.Tasks.Tame.Audit do
  use Tame.Task

  @shortdoc "Shows what any NIF can do and whether it blocks, without its source"

  @moduledoc """
  Shows what any NIF can do and whether it blocks, without its source.

      $ mix tame.audit jiffy                      # a module, an application, a folder (of a release), a .so
      $ mix tame.audit --all                      # everything on the code path, OTP's own among it
      $ mix tame.audit jiffy --diff old.json      # what changed since mix tame.audit jiffy --json old.json
      $ mix tame.audit jiffy:decode/1 --input json
      $ mix tame.audit crypto:hash/2 --input '=sha256,binary'
      $ mix tame.audit fxml_stream:parse_element/1 --input-file bench/audited/xml.exs
      $ mix tame.audit --ci tame.audit.exs --baseline tame.baseline.exs --junit audit.xml

  First it shows what each library can do: how its own table declares its functions (normal, dirty CPU, dirty I/O), and
  what it asks of the API. Then it calls the functions named on the command line on inputs of growing size, in a VM of
  their own, and says whether they block. `Tame.Audit` shows both with an example, and says how it measures.

  ## Verdicts

  Several may hold; each is shown with its numbers:

  #{Tame.Audit.Verdict.help()}

  A function that does not return or crashes cannot be measured.

  ## Command line options

    * `--all` - every library on the code path
    * `--input GENERATOR` - what to call a function with: #{Enum.map_join(Tame.Audit.Input.names(), ", ", &"`#{&1}`")}; one for
      each argument with commas between them, or one for all. `=TERM` is that Erlang term at every size
    * `--input-file FILE` - an Elixir file whose value is `fn size -> [argument, ...] end`
    * `--budget TIME` - the slice that is still good (default: 1ms)
    * `--limit TIME` - a size that would take longer is not tried, and a call that takes longer is ended (default:
      10s)
    * `--up-to BYTES` - the largest size, which is the last one (default and most: 256 MiB of a binary, 64 MiB of JSON, UTF-8
      and a file's, 16 MiB of a term, 256 KiB of an integer); where it is named and the time does not suffice for it, the
      verdict is `inconclusive`
    * `--json FILE` - write what was found as JSON too (`-`: standard output)
    * `--diff FILE` - show what has changed in the same libraries since that JSON was written
    * `--ci FILE` - check what the file lists, see `Tame.Audit.Policy`
    * `--baseline FILE` - findings of `--ci` that are accepted, with reason and date, see `Tame.Audit.Baseline`; those
      that are not found any more are named
    * `--junit FILE` - write the outcome of `--ci` as JUnit's XML too

  Where a module calls `load_nif` and has no NIFs once it is loaded, its application is started, in the VM in which the
  function is called, and named. Otherwise no application is started; an input file may do that. All sizes of a function
  together take less than half a minute, or a minute where `--up-to` names a size. Whether it leaks and what becomes of a
  killed caller come after that: some seconds where calls are short, at most 13 times `--limit` and 12 times the longest
  call that was measured. What a function prints is thrown away.

  A leak is seen where memory grows by 16 KiB or more in each of six rounds of a third of a second (of at most 160,000
  calls and no fewer than 80): 47 bytes of a call of 0.9 ms, 205 of one of 10 ms. It is looked for on the smallest size
  alone, in the memory of the VM's allocators and malloc's; what neither knows, such as a mapping, counts by whole pages and
  from 512 KiB in each 40 ms on. Descriptors that stay open are looked for in 60 calls of the smallest size, where one takes less than 20 ms.

  ## Caveats

  The library runs with your rights. OS processes that it starts end with its VM, on Linux, in whatever session they
  are; not those that become another user's (setuid) where you are not root, and none when it kills the VM's parent,
  `tame_warden`. What it does to files, to others on the network and to processes of yours is not undone: what you do
  not trust at all, audit in a container.

  ## Exit status

  `0` when all targets were audited, with any verdict. `1` when a library or function could not be audited, crashed or
  did not return, by itself, in a row or when its caller was killed (each has one line), when the command line is wrong, or when a check of `--ci` falls short.
  """

  alias Tame.{Audit, Options, Output, Progress, SystemInfo}
  alias Tame.Audit.{Baseline, Diff, Format, JUnit, Policy}

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
    junit: :string,
    baseline: :string
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
         {:ok, old} <- Diff.read(options[:diff]),
         :ok <- Output.apart([options[:json], options[:junit]]),
         :ok <- Output.check(options[:json]),
         :ok <- Output.check(options[:junit]),
         {:ok, checks} <- checks(words, options),
         {:ok, baseline} <- Baseline.read(options[:baseline]),
         :ok <- :tame_labs_native.build(),
         system = SystemInfo.collect(Enum.join(["mix tame.audit" | argv], " ")),
         {:ok, result} <- audit(checks, baseline, system, options),
         _ = if(old, do: result |> Format.diff(old) |> IO.write()),
         :ok <- Output.write(options[:json], fn -> Format.json(result) end) do
      for failure <- result.failures, do: Mix.shell().error(failure)
      Tame.Task.outcome(result.failures == [])
    end
  end

  # ---- what to look at ------------------------------------------------------------------------------

  defp checks(words, options) do
    case {words, options[:all], options[:ci]} do
      {[], nil, nil} ->
        {:error, @usage}

      {[], true, nil} ->
        with :ok <- alone("--all", options, @calling),
             :ok <- with_ci(:junit, options),
             :ok <- with_ci(:baseline, options),
             do: {:ok, [all()]}

      {[], nil, path} ->
        with :ok <- alone("--ci", options, @calling ++ [:diff]), do: Policy.read(path)

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
    with :ok <- with_ci(:junit, options), :ok <- with_ci(:baseline, options) do
      Policy.each(words, &Policy.check(&1, Keyword.take(options, @calling)))
    end
  end

  defp with_ci(switch, options) do
    if options[switch], do: {:error, "--#{switch} goes with --ci"}, else: :ok
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

  defp audit(checks, baseline, system, options) do
    if options[:ci],
      do: judge(checks, baseline, system, options[:junit]),
      else: show(Enum.map(checks, & &1.check), system)
  end

  defp show(checks, system) do
    with {:ok, result} <- Audit.run(checks, system, Progress.printer()) do
      Progress.clear()
      result |> Format.text() |> IO.write()
      {:ok, result}
    end
  end

  defp judge(checks, baseline, system, junit) do
    {outcomes, stale, result} =
      Policy.judge(checks, baseline, system, Progress.printer(), &Progress.clear/0)

    for {text, seconds, []} <- outcomes do
      IO.puts("holds  #{text}  #{:erlang.float_to_binary(seconds, decimals: 1)} s")
    end

    for line <- stale, do: IO.puts("stale  #{line}")

    with :ok <- Output.write(junit, fn -> JUnit.xml(outcomes) end), do: {:ok, result}
  end
end
