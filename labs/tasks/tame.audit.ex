defmodule Mix.Tasks.Tame.Audit do
  use Mix.Task

  @shortdoc "Says of any NIF, without its source, what it can do and whether it blocks"

  @moduledoc """
  Says of any NIF, without its source, what it can do and whether it blocks.

      $ mix tame.audit jiffy                      # a module, an application, a folder (of a release), a .so
      $ mix tame.audit --all                      # everything on the code path, OTP's own among it
      $ mix tame.audit jiffy --diff old.json      # what changed since mix tame.audit jiffy --json old.json
      $ mix tame.audit jiffy:decode/1 --input json
      $ mix tame.audit crypto:hash/2 --input '=sha256,binary'
      $ mix tame.audit fxml_stream:parse_element/1 --input-file bench/audited/xml.exs
      $ mix tame.audit --ci tame.audit.exs --junit audit.xml

  ## What a library can do

  Each library is loaded into a process that is thrown away, with the API present but no VM: one that crashes there is named
  with its signal and does no harm. A stripped one is read the same, for what it is loaded by is left in it; one that is cut off or
  damaged is named. Shown is what its own table says of each function (normal, dirty CPU, dirty I/O), what it
  asks of the API, and, from a VM of its own, whether the module has bound what the table has:

      jiffy  /usr/lib/erlang/lib/jiffy-1.1.1/priv/jiffy.so
        NIF 2.16, erts-12.0 or newer, yields, charges, has an upgrade callback, has an unload callback,
        resources (with destructors)
        normal (4): nif_decode_init/2, nif_decode_iter/5, nif_encode_init/2, nif_encode_iter/3

      1 library; functions: 4 normal

  A function that is declared normal in a library that yields may move to a dirty scheduler by itself. Whether resources have
  destructors is an argument of a call that `load` makes; it is called, with 0 for what its module would give, and a library
  that declines has said nothing of it. OTP's NIFs that are part of the emulator are named, and how they are declared is
  unknown.

  ## What a function does

  It is called in a VM of its own on inputs of growing size, from 1 KiB on fourfold, each in a fresh process bound to one
  scheduler, beside a neighbour bound to the same:

        fxml_stream:parse_element/1  on xml.exs
         bytes  elapsed µs  longest slice µs  longest NIF µs  on      charged÷used  neighbour µs  loop slice µs  loop neighbour µs  dirty wait µs
          1024        46.9              49.2            41.7  normal          0.27         0.000           4562               8150              -
          4096         117               121             106  normal          0.36         0.000           3106               5686              -
         16384         400               403             366  normal          0.31         0.000           3531               6816              -
         65536        1693              1625            1384  normal          0.46           913           2032               2872              -
        262144        7701              7140            5028  normal          0.16          6131           6424               6754              -
       1048576       34787             30419           20537  normal          0.15         30052          28848              29027              -
       4194304      140386            122556           80214  normal          0.18        122640         129748             129629              -
      16777216      580553            516420          352518  normal          0.12        517403              -                  -              -
        the longest slice grows with bytes^0.98 (R² 1.00, 8 sizes)
        blocks above 40,452 bytes: a slice of 516 ms at 16,777,216 bytes
        ignores a killed caller: work went on for 496 ms of a call of 581 ms (at 16,777,216 bytes)
        67108864 bytes and more not tried: it would take too long
        fxml_stream:parse_element/1 holds a scheduler for 516 ms on an input of 16777216 bytes, and every
        process of that scheduler waits. Above about 40452 bytes it is over 1 ms: a call of 581 ms should
        yield on dirty schedulers (enif_schedule_nif with a dirty flag, each millisecond), or bound the
        input. fxml_stream:parse_element/1 goes on for 496 ms when its caller is gone: look at
        enif_is_current_process_alive between steps, or yield, because the VM frees a call that waits for
        its turn.

  `longest slice` is time on a scheduler without a break, `longest NIF` the longest single call of one of the module's NIFs within
  the call (a slice may hold many); both are the least of several calls, without the time for which the operating system gave the
  core to somebody else. `charged÷used` is reductions against 4 for each µs, of calls in a row where there are such; `loop` is
  calls in a row for a quarter of a second. `dirty wait` is how long a dirty NIF waited beside as many callers as there are
  dirty threads. The verdicts, of which several may hold, each with its numbers:

    * `well-behaved` - no slice clearly above the budget, alone or in a row
    * `blocks above N bytes` - one slice is longer than the budget from that size on
    * `under-charges` - no call is long, and a row of them holds the scheduler all the same
    * `dirty, holds its thread for T at N bytes` - regular schedulers go on, other dirty work waits
    * `ignores a killed caller` - the work went on when the caller was killed

  and, of what could not be measured, `does not return` and `crashes`. What a garbage collection of a large heap does on a dirty
  scheduler is not counted as the function's.

  ## Command line options

    * `--all` - every library on the code path
    * `--input GENERATOR` - what to call a function with: #{Enum.map_join(Tame.Audit.Input.names(), ", ", &"`#{&1}`")}; one for
      each argument with commas between them, or one for all. `=TERM` is that Erlang term at every size
    * `--input-file FILE` - an Elixir file whose value is `fn size -> [argument, ...] end`
    * `--budget TIME` - the slice that is still good (default: 1ms)
    * `--limit TIME` - a size that would take longer is not tried, a call that does is ended (default: 10s)
    * `--up-to BYTES` - the largest size (default: 256 MiB of a binary, 16 MiB of a term)
    * `--json FILE` - write what was found as JSON too
    * `--diff FILE` - what changed in the libraries since that JSON was written, of the same targets
    * `--ci FILE` - check what the file lists, see `Tame.Audit.Gate`
    * `--junit FILE` - write the outcome of `--ci` as JUnit's XML too

  A function's application is not started; an input file may do so. All sizes of a function together take less than half a minute.

  ## Exit status

  `0` when all was looked at, whatever the verdicts; `1` when a library or function could not be looked at, crashed or did not
  return, each with one line, when the command line is wrong, or when a check of `--ci` falls short.
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
