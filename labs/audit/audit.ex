defmodule Tame.Audit do
  @moduledoc """
  Is this NIF well-behaved? An answer for any NIF, without its source.

  The static part reads what each library's own table says of its functions, and what it can do (`Tame.Audit.Static`). The
  dynamic part calls a function in a VM of its own on inputs of growing size (`Tame.Audit.Dynamic`) and judges what it
  saw (`Tame.Audit.Verdict`). `mix tame.audit` is the command.

  ## What a library can do

  Each library is loaded into a throw-away process that has the API but no VM. A library that crashes there is named
  with its signal and does no harm; so is one that is cut off or damaged. A stripped library is read like any other,
  because the symbols it is loaded by are still in it. The audit shows what the library's table says of each function
  (normal, dirty CPU, dirty I/O), what it asks of the API, and, from a VM of its own, whether the module has bound
  what the table has:

      jiffy  /usr/lib/erlang/lib/jiffy-1.1.1/priv/jiffy.so
        NIF 2.16, erts-12.0 or newer, yields, charges, has an upgrade callback, has an unload callback,
        resources (with destructors)
        normal (4): nif_decode_init/2, nif_decode_iter/5, nif_encode_init/2, nif_encode_iter/3

      1 library; functions: 4 normal

  A function that is declared normal in a library that yields may move to a dirty scheduler by itself. Whether
  resources have destructors is known from the arguments of a call that `load` makes, so the audit calls `load`, with
  0 for its module's argument; if `load` declines, destructors stay unknown. OTP's NIFs that are part of the emulator
  are named; where their table cannot be read, their kind is unknown.

  ## What a function does

  The function is called in a VM of its own on inputs that grow fourfold from 1 KiB on, up to the largest size itself. Each call runs in a fresh
  process bound to one scheduler, beside a neighbour bound to the same:

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

  `longest slice` is time on a scheduler without a break. `longest NIF` is the longest single call of one of the
  module's NIFs within the call (a slice may hold many): the share that it had of another call, which was traced. All
  three are of one of several calls, that from which the operating system took the least; the slice is without that. What
  goes on on both kinds of schedulers is judged on both. `loop` columns are of calls in a row for a quarter of a
  second; all that the operating system took from the row is taken off its longest slice, which so is a lower bound.
  Where that row has a long slice and no call alone had one, rows are looked at again with a trace of the NIFs' calls
  (of the module's own): was it one call? `charged÷used` is reductions against 4 for each µs, of the calls in a row where there were any. `dirty wait`
  is how long a dirty NIF waited beside as many callers as there are dirty threads. `mix help tame.audit` lists the
  verdicts. The garbage collection of a large heap, which the VM does on a dirty scheduler, is not counted as the
  function's.
  """

  alias Tame.Audit.{Dynamic, Input, Library, Static, Target, Verdict}
  alias Tame.{FunctionName, OtherLoad, SystemInfo, Warning}

  @typedoc "What an audit found. `:failures` are lines on what should have been looked at and could not be."
  @type result :: %{
          system: keyword(),
          warnings: [Warning.t()],
          libraries: [Library.t()],
          targets: [Dynamic.t()],
          notes: [String.t()],
          failures: [String.t()]
        }

  @typedoc """
  A target with how it is called, if it is a function: `:input`, `:budget_us`, `:limit_ms`, the largest size as
  `:up_to` bytes, and the time for all sizes as `:total_ms`.
  """
  @type check :: %{
          required(:target) => Target.t(),
          optional(:input) => Input.t(),
          optional(:budget_us) => pos_integer(),
          optional(:limit_ms) => pos_integer(),
          optional(:up_to) => pos_integer(),
          optional(:total_ms) => pos_integer()
        }

  @budget_us 1000
  @limit_ms 10_000

  @doc "Looks at the libraries of all targets, then calls the functions among them, one after the other."
  @spec run([check()], keyword(), (map() -> any())) :: {:ok, result()} | {:error, String.t()}
  def run(checks, system, progress \\ fn _ -> :ok end) do
    load = OtherLoad.start()

    with {:ok, found} <- Static.look(Enum.map(checks, & &1.target)) do
      result = Map.merge(found, %{targets: []})
      {:ok, checks |> Enum.reduce(result, &call(&1, &2, progress)) |> over(system, load)}
    end
  end

  @doc "What was found, with what is known of the machine now that it is over."
  @spec over(map(), keyword(), OtherLoad.reading()) :: result()
  def over(found, system, load) do
    system = SystemInfo.ended(system, load)
    # Where nothing was called there is no figure to warn of.
    warnings = if found.targets == [], do: [], else: SystemInfo.warnings(system)
    Map.merge(found, %{system: system, warnings: warnings})
  end

  defp call(%{target: {:function, mfa}} = check, result, progress) do
    options = %{
      input: check.input,
      budget_us: check[:budget_us] || @budget_us,
      limit_ms: check[:limit_ms] || @limit_ms,
      up_to: check[:up_to],
      total_ms: check[:total_ms],
      dirty: dirty(mfa, result.libraries),
      progress: progress
    }

    case dynamic(mfa, options) do
      {:ok, target} ->
        %{result | targets: result.targets ++ [target], failures: result.failures ++ ended(target)}

      {:error, why} ->
        %{result | failures: result.failures ++ [why]}
    end
  end

  defp call(_static, result, _progress), do: result

  # What fails in here is a defect of the audit; what it found of other functions is not lost with it.
  defp dynamic(mfa, options) do
    Dynamic.audit(mfa, options)
  rescue
    error ->
      why = Exception.format_banner(:error, error) |> String.split("\n") |> hd()
      frames = Enum.take(__STACKTRACE__, 1)
      where = Enum.map_join(frames, &Exception.format_stacktrace_entry/1)
      {:error, "#{FunctionName.text(mfa)}: the audit itself failed: #{why} at #{where}"}
  end

  # What cannot be called is no audit that went well.
  defp ended(target) do
    for verdict <- target.verdicts,
        Verdict.name(verdict) in Verdict.names(:failure),
        do: "#{target.target} #{Verdict.text(verdict)}"
  end

  # A trace cannot tell the two kinds of dirty schedulers apart; the library's table can.
  defp dirty({module, _, _}, libraries) do
    kinds =
      for library <- libraries,
          library.module == Atom.to_string(module),
          kind <- [:dirty_cpu, :dirty_io],
          Library.of_kind(library, kind) != [],
          do: kind

    if :dirty_io in kinds and :dirty_cpu not in kinds, do: :dirty_io, else: :dirty_cpu
  end
end
