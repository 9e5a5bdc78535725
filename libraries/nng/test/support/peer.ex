defmodule Tame.Nng.Test.Peer do
  @moduledoc false
  # A VM of its own, with our code. Ends with the test that calls start_link, and the other way round.

  def start_link do
    {:ok, peer, _} = :peer.start_link(%{connection: :standard_io, args: paths()})
    {:ok, _} = call(peer, :application, :ensure_all_started, [:elixir])
    {:ok, _} = call(peer, :application, :ensure_all_started, [:tame_nng])
    peer
  end

  def call(peer, module, name, arguments \\ []),
    do: :peer.call(peer, module, name, arguments, 600_000)

  # What a VM says that runs this code, and its exit status.
  def run(code) do
    arguments = ["-noinput" | Enum.map(paths(), &to_string/1)] ++ ["-eval", code]
    System.cmd("erl", arguments, stderr_to_stdout: true)
  end

  defp paths, do: Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
end
