defmodule Tame.Job do
  @moduledoc """
  Writes the functions of a module whose NIFs are jobs (`c_include/tame.h`).

      defmodule Exor do
        use Tame.Job
        @on_load :load

        @spec exor(binary(), binary()) :: binary()
        defjob exor(a, b)

        defjob lines(data), iodata: [1], stream: true

        def load, do: :erlang.load_nif(path(), 0)
      end

  For each `defjob` there is the function, which calls the NIF `exor_nif` of the function table and waits where that
  has to wait. The options are those of the parse transform `:tame_job`: `nif`, `deadline_ms`, `iodata`, `stream`;
  a stream is an Elixir stream here. Plain NIFs of the library are functions of the module's own, listed in `@nifs`.
  """

  defmacro __using__([]) do
    quote do
      import Tame.Job, only: [defjob: 1, defjob: 2]
      Module.register_attribute(__MODULE__, :tame_nifs, accumulate: true)
      Module.register_attribute(__MODULE__, :nifs, persist: true)
      @before_compile Tame.Job
    end
  end

  defmacro __using__(options) do
    raise ArgumentError, "use Tame.Job, #{Macro.to_string(options)}: takes no options"
  end

  @doc "Defines a function that calls a job."
  defmacro defjob(call, options \\ []) do
    {name, args} =
      case Macro.decompose_call(call) do
        {name, args} when is_atom(name) -> {name, args}
        _ -> raise ArgumentError, "defjob #{Macro.to_string(call)}: must be name(arg, ...)"
      end

    arity = length(args)
    options = entry(name, arity, options)
    vars = Macro.generate_arguments(arity, __MODULE__)

    quote do
      @tame_nifs {unquote(options.nif), unquote(arity)}
      def unquote(name)(unquote_splicing(vars)) do
        unquote(body(options, name, vars))
      end
    end
  end

  defp entry(name, arity, options) do
    {^name, ^arity, options} = :tame_job.entry({name, arity, Enum.into(options, %{})})
    options
  catch
    {_, sentence} -> raise ArgumentError, "defjob #{name}/#{arity}, #{sentence}"
  end

  defp body(options, name, vars) do
    call = quote(do: {__MODULE__, unquote(name), unquote(vars)})
    {nif_vars, made} = nif_args(vars, Map.get(options, :iodata, []))

    quote do
      unquote_splicing(made)
      unquote(call(options, call, made, nif_vars))
    end
  end

  @short_bytes :tame_job.short_bytes()

  # As tame_job has it: a short binary is what tame:iovec/1 makes of it.
  defp iovec(var) do
    quote do
      case unquote(var) do
        short when is_binary(short) and byte_size(short) <= unquote(@short_bytes) -> short
        other -> :tame.iovec(other)
      end
    end
  end

  # As tame_job has it: where a long binary goes through tame:aligned/1.
  defp aligned(var, long_bytes) do
    quote do
      case unquote(var) do
        long when is_binary(long) and byte_size(long) > unquote(long_bytes) -> :tame.aligned(long)
        other -> other
      end
    end
  end

  # The arguments of the NIF, and what makes those that are others than the function's.
  defp nif_args(vars, iodata) do
    long_bytes = :tame_job.long_bytes()

    made =
      for {var, number} <- Enum.with_index(vars, 1),
          number in iodata or is_integer(long_bytes),
          into: %{} do
        value = if number in iodata, do: iovec(var), else: aligned(var, long_bytes)
        {var, {:=, [], [Macro.var(:"made#{number}", __MODULE__), value]}}
      end

    nif_vars =
      for var <- vars, do: with(%{^var => {:=, _, [as, _]}} <- made, do: as, else: (_ -> var))

    {nif_vars, Map.values(made)}
  end

  defp call(%{stream: true} = options, call, _, nif_vars) do
    quote(do: Tame.stream({unquote(start(options)), unquote(call), unquote(nif_vars)}))
  end

  defp call(%{deadline_ms: _} = options, call, made, nif_vars),
    do: value(start(options), call, made, nif_vars)

  # As :tame.value/2 shows it.
  defp call(%{nif: nif} = options, call, made, nif_vars) do
    later = Macro.var(:later, __MODULE__)

    quote do
      case :erlang.get(:"$tame_deadline") do
        :undefined ->
          case unquote(nif)(unquote_splicing(nif_vars)) do
            {:"$tame", _, _} = unquote(later) ->
              unquote(value(later, call, made, nif_vars))

            value ->
              value
          end

        _ ->
          unquote(value(start(options), call, made, nif_vars))
      end
    end
  end

  defp value(later, call, [], _), do: quote(do: :tame.value(unquote(later), unquote(call)))

  defp value(later, call, _, nif_vars),
    do: quote(do: :tame.value(unquote(later), unquote(call), unquote(nif_vars)))

  defp start(%{nif: nif, deadline_ms: ms}),
    do: quote(do: {:"$tame", :start, {unquote(nif), unquote(ms)}})

  defp start(%{nif: nif}), do: quote(do: {:"$tame", :start, unquote(nif)})

  defmacro __before_compile__(env) do
    nifs = [{:"$tame", 3} | Module.get_attribute(env.module, :tame_nifs)] |> Enum.uniq()

    stubs =
      for {nif, arity} <- nifs, not Module.defines?(env.module, {nif, arity}) do
        args = for _ <- List.duplicate(nil, arity), do: {:_, [], nil}

        # Public, because Elixir drops a private function that only the library calls.
        quote do
          @doc false
          def unquote(nif)(unquote_splicing(args)), do: :erlang.nif_error(:nif_not_loaded)
        end
      end

    # A list of lists where Elixir accumulates them (1.20).
    plain = env.module |> Module.get_attribute(:nifs) |> List.wrap() |> List.flatten()

    quote do
      @nifs unquote(plain ++ nifs)
      unquote_splicing(stubs)
    end
  end
end
