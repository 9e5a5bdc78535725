defmodule Tame.Audit.Conform do
  @moduledoc """
  Does a NIF library do the same isolated as in the VM? Any library, without its source.
  """

  alias Tame.Audit.{Baseline, Functions, Library, Static}
  alias Tame.Audit.Conform.{Run, Words}
  alias Tame.{OtherLoad, SystemInfo}

  @default_calls 300
  @default_total_ms 120_000

  @type result :: %{
          system: keyword(),
          seed: non_neg_integer(),
          libraries: [map()],
          failures: [String.t()]
        }

  @doc "How many calls of each library are compared, and for how long, unless said otherwise."
  def default_calls, do: @default_calls
  def default_total_ms, do: @default_total_ms

  @doc "The libraries behind targets, compared. `done` is told of each library once it is."
  @spec run([Tame.Audit.Target.t()], keyword(), keyword()) :: {:ok, result()} | {:error, String.t()}
  def run(targets, system, options) do
    load = OtherLoad.start()

    options = complete(options)

    with {:ok, found} <- Static.look(targets) do
      {libraries, failures} =
        found.libraries
        |> Enum.map(fn library ->
          compared = library(library, options)
          options.done.(compared)
          compared
        end)
        |> Enum.split_with(&match?({:ok, _}, &1))

      {:ok,
       %{
         system: SystemInfo.ended(system, load),
         seed: options.seed,
         calls: options.calls,
         libraries: Enum.map(libraries, &elem(&1, 1)),
         failures: failures(found, Enum.map(failures, &elem(&1, 1))) ++ ended(libraries)
       }}
    end
  end

  # What is no NIF library is a note beside one that is. Where there is none, nothing was compared, and that is no success.
  defp failures(%{libraries: [], failures: [], notes: notes}, []), do: notes
  defp failures(found, failures), do: found.failures ++ failures

  # Of these a part was compared.
  defp ended(libraries),
    do: for({:ok, %{ended: why} = library} <- libraries, why, do: "#{library.module}: #{why}")

  @doc "What differs by library or function, as `Tame.Audit.Baseline.stale/2` asks for it."
  @spec found(result()) :: [{String.t(), [atom()]}]
  def found(result) do
    for library <- result.libraries,
        {text, kinds} <- [
          {library.module, for(%{status: :differs} <- library.scenarios, do: :scenario)}
          | for(row <- library.functions, do: {row.function, kinds(library, row.function)})
        ],
        do: {text, kinds}
  end

  defp kinds(library, function),
    do: for(%{function: ^function, kind: kind} <- library.differences, do: kind)

  @doc "What differs and is not accepted: `{function or module, kind}`."
  @spec unexplained(result(), [Baseline.entry()]) :: [{String.t(), atom()}]
  def unexplained(result, accepted) do
    for {text, kinds} <- found(result),
        kind <- kinds -- Baseline.accepted(accepted, text),
        do: {text, kind}
  end

  @doc "The functions of samples that are none of those that were called."
  @spec unused(result(), [{mfa(), [term()]}]) :: [String.t()]
  def unused(result, samples) do
    called = for library <- result.libraries, row <- library.functions, do: row.function
    Enum.uniq(for {function, _} <- samples, do: Tame.FunctionName.text(function)) -- called
  end

  defp complete(options) do
    Map.merge(
      %{
        calls: @default_calls,
        total_ms: @default_total_ms,
        seed: :rand.uniform(0xFFFF_FFFF),
        samples: [],
        progress: fn _ -> :ok end,
        done: fn _ -> :ok end
      },
      Map.new(options)
    )
  end

  @doc "One library, as the static part of the audit found it. The error is one line."
  @spec library(Library.t(), keyword() | map()) :: {:ok, map()} | {:error, String.t()}
  def library(library, options) do
    options = complete(options)
    module = String.to_atom(library.module)
    began = System.monotonic_time(:millisecond)

    with {:file, beam} <- beam(library, module),
         [_ | _] = functions <- Functions.of(library, beam),
         words = Words.of(beam, library.path),
         {:ok, found} <- Run.library(Enum.map(functions, &elem(&1, 0)), words, options) do
      {:ok,
       Map.merge(found, %{
         module: library.module,
         path: library.path,
         nifs: length(library.functions),
         took_ms: System.monotonic_time(:millisecond) - began
       })}
    else
      [] -> {:error, "#{library.module}: exports no function that leads to its library"}
      {:error, why} -> {:error, "#{library.module}: #{why}"}
    end
  end

  defp beam(library, module) do
    cond do
      Library.built_in?(library) -> {:error, "is part of the emulator, and cannot be isolated"}
      library.nif_version == nil -> {:error, library.path}
      true -> beam(:code.which(module))
    end
  end

  defp beam(file) when is_list(file) and file != [], do: {:file, to_string(file)}
  defp beam(_), do: {:error, "its module is not on the code path"}
end
