defmodule Tame.SHA3.Test.Peer do
  @moduledoc false
  # A VM of its own, with our code. Ends with the test that calls start_link, and the other way round.

  def start_link(options \\ %{}) do
    options = Map.merge(%{connection: :standard_io}, options)
    {:ok, peer, _} = :peer.start_link(Map.update(options, :args, paths(), &(&1 ++ paths())))
    {:ok, _} = call(peer, :application, :ensure_all_started, [:elixir])
    peer
  end

  def call(peer, module, name, arguments \\ []),
    do: :peer.call(peer, module, name, arguments, 600_000)

  # Which implementation a VM with this in its environment chooses, all that it writes, and its exit status.
  def choose(implementation) do
    code = ~c"io:put_chars(atom_to_list(tame_sha3:implementation())), halt()."
    arguments = [~c"-noinput", ~c"-eval", code | paths()]

    System.cmd("erl", Enum.map(arguments, &to_string/1),
      env: [{"TAME_SHA3_IMPL", implementation}],
      stderr_to_stdout: true
    )
  end

  defp paths, do: Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
end
