defmodule Tame.IsolatedTermsTest do
  # Terms of every size class of the emulator go to an isolated library and come back as they went. A VM
  # that ends of one is started anew, so that each class that ends it is named.
  use ExUnit.Case, async: true

  alias Tame.TermScenarios

  for bind <- [:recompile, :overlay] do
    test "every class comes back as it went, #{bind}" do
      options = %{bind: unquote(bind), spin_us: 0}
      {peer, names} = start(options)
      {failed, peer} = Enum.flat_map_reduce(Enum.with_index(names), peer, &echo(&1, &2, options))
      :peer.stop(peer)
      assert failed == []
    end
  end

  test "so do random ones" do
    {peer, _} = start(%{})
    seed = ExUnit.configuration()[:seed] * 1000

    for {budget, count} <- [{100, 3000}, {4000, 2000}, {40_000, 300}, {1_000_000, 30}] do
      assert call(peer, :echo_random, [seed, count, budget]) == :equal
    end

    :peer.stop(peer)
  end

  defp echo({name, index}, peer, options) do
    case call(peer, :echo, [index]) do
      :equal ->
        {[], peer}

      {:vm_ended, _} = ended ->
        {peer, _} = start(options)
        {[{name, ended}], peer}

      other ->
        {[{name, other}], peer}
    end
  end

  defp start(options) do
    Process.flag(:trap_exit, true)
    peer = Tame.Test.PeerVm.start_link()
    {peer, call(peer, :start, [options])}
  end

  defp call(peer, function, args) do
    :peer.call(peer, TermScenarios, function, args, 200_000)
  catch
    :exit, reason -> {:vm_ended, elem(reason, 0)}
  end
end
