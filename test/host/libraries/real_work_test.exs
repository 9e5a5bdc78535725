defmodule Tame.Host.Libraries.RealWorkTest do
  # What libraries are for, in the VM and isolated: the same is seen (support/library_scenarios.ex).
  use ExUnit.Case, async: true

  alias Tame.LibraryScenarios
  alias Tame.Test.{CLibrary, PeerVm}

  # What a scenario sees in the VM, after it has seen the same isolated.
  defp both(module, application, scenario, args, env \\ []) do
    [in_vm, isolated] =
      for where <- [:vm, :isolated] do
        peer = PeerVm.start_link(%{env: env})
        assert PeerVm.scenario(peer, LibraryScenarios, :prepare, [module, application, where])
        seen = PeerVm.scenario(peer, LibraryScenarios, scenario, args.(where))
        :peer.stop(peer)
        seen
      end

    assert isolated == in_vm
    in_vm
  end

  @tag needs: :fast_tls
  test "fast_tls: sessions with a certificate, data both ways, and what is no TLS" do
    file = Path.join(CLibrary.tmp_dir!(), "certificate.pem")

    %{cert: der, key: key} =
      :public_key.pkix_test_root_cert(~c"Tame", key: {:rsa, 2048, 65_537}, digest: :sha256)

    kind = elem(key, 0)

    File.write!(
      file,
      :public_key.pem_encode([
        {:Certificate, der, :not_encrypted},
        :public_key.pem_entry_encode(kind, key)
      ])
    )

    sizes = [0, 1, 1000, 16_384, 16_385, 100_000]
    {told, refused} = both(:fast_tls, :fast_tls, :tls, fn _ -> [file, sizes, 16] end)
    # Sixteen sessions told the same.
    assert [{back, certificate, {:ok, _cipher}, _verified}] = told
    assert back == for(size <- sizes, do: {size, true})
    assert certificate == :crypto.hash(:sha256, der)
    assert refused
  end

  @tag needs: :bitcask
  test "bitcask: 10,000 keys, written again, deleted, merged and opened anew" do
    folder = CLibrary.tmp_dir!()
    args = fn where -> [Path.join(folder, "#{where}"), 10_000] end
    seen = both(:bitcask_nifs, :bitcask, :bitcask, args)
    left = 10_000 - 1429
    assert {^left, contents} = seen.first
    for when_ <- [:reopened, :merged, :again], do: assert(seen[when_] == {left, contents})
    assert seen.needs_merge
    assert seen.one == {{:ok, "merge"}, :not_found, {:ok, :binary.copy(<<3::32, 2>>, 20)}}
    assert seen.keys == left + 1
  end

  @tag needs: :ets_cache
  test "ets_cache: tables that sixteen callers ask" do
    {told, sizes, gone, counters, cleared} =
      both(:ets_cache, :cache_tab, :caches, fn _ -> [4, 16, 200] end)

    assert [_] = told
    assert sizes == [50, 50, 50, 50]
    assert gone == List.duplicate(:error, 4)
    assert cleared == gone
    assert counters == List.duplicate(hd(counters), 4)
  end

  @tag needs: :cl
  test "cl: a kernel on the first OpenCL device adds two vectors" do
    env = [{~c"POCL_CACHE_DIR", String.to_charlist(CLibrary.tmp_dir!())}]
    {sums, refused} = both(:cl, :cl, :opencl, fn _ -> [10_000] end, env)
    assert sums == for(n <- 1..10_000, do: n * 1.5)
    assert refused == {:error, :invalid_kernel_name}
  end
end
