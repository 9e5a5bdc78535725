defmodule Tame.IsolationTest do
  # Real NIF libraries, unmodified, in a host: the same results as in the VM.
  use ExUnit.Case, async: true

  alias Tame.{IsolationCalls, IsolationScenarios}

  @calls 500

  setup do
    paths = Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
    {:ok, peer, _} = :peer.start_link(%{connection: :standard_io, args: paths})
    %{peer: peer}
  end

  describe "as in the VM:" do
    for {library, modules} <- IsolationCalls.libraries() do
      if Enum.all?(modules, &(:code.which(&1) != :non_existing)) do
        @tag timeout: 120_000
        test "#{@calls} calls of #{library}", %{peer: peer} do
          seed = ExUnit.configuration()[:seed]
          result = run(peer, IsolationScenarios, :compare, [unquote(library), @calls, seed])
          assert {seed, result.isolated} == {seed, []}
          assert {seed, result.restored} == {seed, []}
          # Not every function of the API is a NIF.
          assert result.served >= @calls / 5
        end
      else
        IO.puts("skip: #{library} is not installed")
      end
    end
  end

  defp run(peer, module, function, args), do: :peer.call(peer, module, function, args, 100_000)
end
