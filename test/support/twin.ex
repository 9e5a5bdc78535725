defmodule Tame.Test.Twin do
  @moduledoc false
  # The same internal NIFs in another VM and in a host. The other VM has modules of stubs in place of the
  # library's own, so that every NIF can be called, and nothing here is replaced.

  import ExUnit.Assertions, only: [assert: 1]

  alias Tame.Property
  alias Tame.Test.{Contract, Host, PeerVm}

  defstruct [:peer, :host, :module]

  # `file` is the test's own, whose funs run there too: a test module lies in no beam file, so it is
  # compiled there once more.
  def start(library, module, load_info, file) do
    host = Host.load!(Host.start(), library, module, load_info)
    peer = PeerVm.start_link()
    {:ok, _} = peer_call(peer, :application, :ensure_all_started, [:ex_unit])
    _ = peer_call(peer, Code, :compile_file, [file])
    {:module, _} = peer_call(peer, Contract, :load_stubs, [module, host.info.table])
    :ok = peer_call(peer, module, :tame_test_load, [to_charlist(Path.rootname(library)), load_info])
    %__MODULE__{peer: peer, host: host, module: module}
  end

  # Of an installed library, until the calling test ends.
  def installed!(app, name, module, load_info, file) do
    twin = start(Host.library!(app, name), module, load_info, file)
    ExUnit.Callbacks.on_exit(fn -> Host.stop(twin.host) end)
    twin
  end

  # Asserts that both give the same, and returns it.
  def same(twin, fun) do
    {in_vm, in_host} = both(twin, fun)
    assert in_host === in_vm
    in_vm
  end

  # The same of that number of inputs.
  def check(generator, twin, count, fun) do
    same? = fn input -> same(twin, fn call -> fun.(call, input) end) && true end
    Property.check(generator, same?, numtests: count)
  end

  # Runs `fun` with a function that calls a NIF: here in the host, there in the VM. {in_vm, in_host}.
  def both(twin, fun) do
    in_vm = peer_call(twin.peer, __MODULE__, :run, [twin.module, fun])
    {in_vm, run_in_host(twin.host, fun)}
  end

  def run(module, fun), do: attempt(fn -> fun.(&apply(module, &1, &2)) end)

  defp run_in_host(host, fun) do
    attempt(fn ->
      fun.(fn name, args ->
        case Host.call(host, name, args) do
          {:value, value} -> value
          {:raise, reason} -> :erlang.error(reason)
          ended -> throw(ended)
        end
      end)
    end)
  end

  defp attempt(fun) do
    {:value, fun.()}
  catch
    :error, reason -> {:raise, reason}
  end

  defp peer_call(peer, module, name, args), do: :peer.call(peer, module, name, args, 600_000)
end
