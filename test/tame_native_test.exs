defmodule TameNativeTest do
  # Where a host runs, by what the VM says of its system.
  use ExUnit.Case, async: true

  test "isolation is refused by name where a host does not run" do
    assert :tame_native.host_runs_on({:unix, :linux}) == :ok

    for {family, name} <- [unix: :darwin, unix: :freebsd, win32: :nt] do
      assert {:error, {:unsupported_system, sentence}} = :tame_native.host_runs_on({family, name})

      assert sentence == ~c"isolation runs on Linux only, and this is #{name}"
    end
  end
end
