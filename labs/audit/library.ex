defmodule Tame.Audit.Library do
  @moduledoc """
  One NIF library as its file describes it: turns what `tame_probe` saw into what the audit shows. Pure.
  """

  @enforce_keys [:module, :path]
  defstruct [
    :module,
    :path,
    :nif_version,
    :bound,
    can: [],
    functions: []
  ]

  @typedoc """
  `:can` is what the library can do, in the order in which it is shown. `:bound` is the state of the module once the
  VM has loaded it: its NIFs, why it does not load, or nil where the VM was not asked.
  """
  @type t :: %__MODULE__{
          module: String.t(),
          path: String.t(),
          nif_version: String.t() | nil,
          bound: nil | {:ok, [{String.t(), arity()}]} | {:error, String.t()},
          can: keyword(),
          functions: [%{name: String.t(), arity: arity(), kind: kind()}]
        }

  @type kind :: :normal | :dirty_cpu | :dirty_io | :unknown

  @kinds [:normal, :dirty_cpu, :dirty_io, :unknown]

  # By which imports a library shows that it can do something.
  @imports [
    yields: ~w(enif_schedule_nif),
    charges: ~w(enif_consume_timeslice),
    threads: ~w(enif_thread_create),
    sends: ~w(enif_send enif_port_command),
    monitors: ~w(enif_monitor_process),
    selects: ~w(enif_select enif_select_x)
  ]

  @resources ~w(enif_open_resource_type enif_open_resource_type_x enif_init_resource_type)

  # What starts a thread beside the API. The name stands in the library's table of strings.
  @thread_symbols [<<0, "pthread_create", 0>>, <<0, "thrd_create", 0>>]

  # Where there is no file.
  @built_in "built into the emulator"
  @not_found "its library lies neither in its application's priv folder nor beside its beam file"

  @doc "Every kind of function."
  @spec kinds() :: [kind()]
  def kinds, do: @kinds

  @doc """
  What a probe saw. `{:other, reason, text}` is a file that is no NIF library at all; `{:error, text}` one that is and cannot
  be read, with the signal where it died.
  """
  @spec from_probe(map(), binary()) ::
          {:ok, t()} | {:other, String.t(), String.t()} | {:error, String.t()}
  def from_probe(%{"error" => %{"reason" => reason, "text" => text}} = entry, bytes) do
    cond do
      reason in ~w(crashed exited hangs) -> {:error, "#{entry["file"]}: #{text}"}
      reason == "bad_library" and not nif?(bytes) -> {:other, reason, text}
      true -> {:error, named(text, entry["file"])}
    end
  end

  def from_probe(%{"module" => module} = entry, bytes) do
    {:ok,
     %__MODULE__{
       module: module,
       path: entry["file"],
       nif_version: entry["nif_version"],
       can: can(entry, bytes),
       functions:
         for(
           function <- entry["functions"],
           do: %{
             name: function["name"],
             arity: function["arity"],
             kind: kind(function["flags"])
           }
         )
         |> Enum.sort_by(&{&1.name, &1.arity})
     }}
  end

  @doc "A library that is part of the emulator, from its own table; `:hidden` where the emulator shows none."
  @spec built_in(module(), [{atom(), arity()}], :hidden | [{atom(), arity(), non_neg_integer()}]) ::
          t()
  def built_in(module, nifs, :hidden), do: %{unseen(module, nifs) | path: @built_in}

  def built_in(module, nifs, table) do
    functions =
      for {name, arity, flags} <- table, do: %{name: "#{name}", arity: arity, kind: kind(flags)}

    %{
      unseen(module, nifs)
      | path: @built_in,
        functions: Enum.sort_by(functions, &{&1.name, &1.arity})
    }
  end

  @doc "Whether the library is part of the emulator."
  @spec built_in?(t()) :: boolean()
  def built_in?(library), do: library.path == @built_in

  @doc "A library that was not found, so the kind of its functions is unknown."
  @spec unseen(module(), [{atom(), arity()}]) :: t()
  def unseen(module, nifs) do
    functions = for {name, arity} <- nifs, do: %{name: "#{name}", arity: arity, kind: :unknown}

    %__MODULE__{
      module: Atom.to_string(module),
      path: @not_found,
      bound: {:ok, for({name, arity} <- nifs, do: {"#{name}", arity})},
      functions: Enum.sort_by(functions, &{&1.name, &1.arity})
    }
  end

  @doc """
  What differs between the library's table and what the VM has bound: `{only there, only in the VM}`.
  """
  @spec unmatched(t()) :: {[String.t()], [String.t()]}
  def unmatched(%__MODULE__{bound: {:ok, bound}, functions: functions}) do
    table = for %{name: name, arity: arity} <- functions, do: {name, arity}
    {texts(table -- bound), texts(bound -- table)}
  end

  def unmatched(_library), do: {[], []}

  @doc """
  The functions of a kind, as texts.

      iex> alias Tame.Audit.Library
      iex> Library.of_kind(%Library{module: "m", path: "m.so", functions: [%{name: "a", arity: 1, kind: :normal}]}, :normal)
      ["a/1"]
  """
  @spec of_kind(t(), kind()) :: [String.t()]
  def of_kind(%__MODULE__{functions: functions}, kind) do
    for %{kind: ^kind} = function <- functions, do: "#{function.name}/#{function.arity}"
  end

  @doc "What a library can do, in words."
  @spec can_texts(t()) :: [String.t()]
  def can_texts(%__MODULE__{can: can}) do
    for({key, true} <- can, do: text(key)) ++ resources(can[:resources])
  end

  defp text(:own_threads), do: "starts threads"
  defp text(:selects), do: "waits for file descriptors"
  defp text(:unload), do: "has an unload callback"
  defp text(:upgrade), do: "has an upgrade callback"
  defp text(key), do: Atom.to_string(key)

  defp resources(nil), do: []
  defp resources("none"), do: []
  defp resources(text), do: ["resources (#{text})"]

  defp can(entry, bytes) do
    imports = entry["imports"]

    api =
      for {key, names} <- @imports, key != :threads, do: {key, Enum.any?(names, &(&1 in imports))}

    threads? = "enif_thread_create" in imports or :binary.match(bytes, @thread_symbols) != :nomatch

    api ++
      [
        own_threads: threads?,
        resources: resources_of(entry, imports),
        upgrade: entry["callbacks"]["upgrade"],
        unload: entry["callbacks"]["unload"],
        min_erts: entry["min_erts"]
      ]
  end

  # The destructor is an argument of a call that load makes.
  defp resources_of(%{"resources" => [_ | _] = types}, _imports) do
    without = for %{"destructor" => false, "name" => name} <- types, do: name

    case {length(types), without} do
      {_, []} -> "with destructors"
      {count, without} when length(without) == count -> "without destructors"
      {_, without} -> "without destructor: #{Enum.join(without, ", ")}"
    end
  end

  defp resources_of(_entry, imports) do
    if Enum.any?(@resources, &(&1 in imports)),
      do: "destructors unknown: load declined to run without its module",
      else: "none"
  end

  defp kind(0), do: :normal
  defp kind(1), do: :dirty_cpu
  defp kind(2), do: :dirty_io
  defp kind(_), do: :unknown

  defp nif?(bytes), do: :binary.match(bytes, <<0, "nif_init", 0>>) != :nomatch

  defp named(text, file), do: if(String.contains?(text, file), do: text, else: "#{file}: #{text}")

  defp texts(pairs), do: for({name, arity} <- pairs, do: "#{name}/#{arity}")
end
