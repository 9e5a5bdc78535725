defmodule Tame.Test.Contract do
  @moduledoc false
  # The contract library (natives/contract) twice: in this VM, behind the module :contract_nif
  # that is made here from what the host says the library has, and in a host.

  import ExUnit.Assertions, only: [flunk: 1]

  alias Tame.Test.Host

  @load_info {:load_info, [1, 2.5, "three"], %{four: 5}}

  @flags ~w(-std=gnu11 -Wall -Wextra -Wmissing-prototypes -Werror -O1 -g -fPIC -shared) ++
           ~w(-fvisibility=hidden)

  # The library's path.
  def build(folder) do
    sources = Path.wildcard(Path.join(:tame.source_dir(), "test/support/natives/contract/*.c"))
    include = Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
    library = Path.join(folder, "contract_nif.so")
    args = @flags ++ ["-I#{include}", "-o", library | sources]
    {output, status} = System.cmd("cc", args, stderr_to_stdout: true)
    if status != 0, do: raise("the contract library does not build:\n" <> output)
    library
  end

  # A host with the library, until the calling test ends.
  def start(library, options \\ []), do: start(library, options, 0)

  # One that was told at its load what this VM was.
  def start_alike(library), do: start(library, [], @load_info)

  defp start(library, options, load_info) do
    host = Host.load!(Host.start(options), library, :contract_nif, load_info)
    ExUnit.Callbacks.on_exit(fn -> Host.stop(host) end)
    host
  end

  # Builds the library in a folder, and loads it into this VM, once. Its path.
  def here!(folder) do
    System.put_env("TAME_CONTRACT", "a value")
    library = build(folder)

    if not Code.ensure_loaded?(:contract_nif) do
      host = Host.load!(Host.start(), library, :contract_nif, @load_info)
      {:module, :contract_nif} = load_stubs(:contract_nif, host.info.table)
      path = to_charlist(Path.rootname(library))
      :ok = apply(:contract_nif, :tame_test_load, [path, @load_info])
      Host.stop(host)
    end

    library
  end

  # A module of stubs for {name, arity, flags}, with a function that binds the library.
  def load_stubs(module, functions) do
    stubs =
      for {name, arity, _flags} <- functions do
        args = for i <- 1..arity//1, do: {:var, 1, :"_#{i}"}
        body = {:call, 1, {:remote, 1, {:atom, 1, :erlang}, {:atom, 1, :nif_error}}, [{nil, 1}]}
        {:function, 1, String.to_atom(name), arity, [{:clause, 1, args, [], [body]}]}
      end

    load =
      {:function, 1, :tame_test_load, 2,
       [
         {:clause, 1, [{:var, 1, :P}, {:var, 1, :I}], [],
          [
            {:call, 1, {:remote, 1, {:atom, 1, :erlang}, {:atom, 1, :load_nif}},
             [{:var, 1, :P}, {:var, 1, :I}]}
          ]}
       ]}

    forms = [{:attribute, 1, :module, module}, load | stubs]
    {:ok, ^module, beam} = :compile.forms(forms, [:export_all, :nowarn_export_all])
    :code.load_binary(module, ~c"tame_test_stubs", beam)
  end

  # Asserts that a call of one argument gives the same here and there, and returns it.
  def same(host, name, arg) do
    here = here(:contract_nif, name, [arg])
    there = there(host, name, [arg])

    # Large terms take long to inspect.
    unless there === here do
      flunk("""
      #{name}(#{inspect(arg)})
        in the VM:   #{inspect(here)}
        in the host: #{inspect(there)}
      """)
    end

    here
  end

  # What a call gives here, in the form that Host.call/3 gives it.
  def here(module, name, args) do
    {:value, apply(module, name, args)}
  catch
    :error, reason -> {:raise, reason}
  end

  def there(host, name, args), do: Host.call(host, name, args)
end
