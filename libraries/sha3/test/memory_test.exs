defmodule Tame.SHA3.MemoryTest do
  use ExUnit.Case, async: true
  alias Tame.SHA3.Test.{Memory, Peer}

  @moduletag :memory

  @mb 1_000_000

  unless File.exists?("/proc/self/status") do
    IO.puts("skipped: tests of memory, because there is no /proc/self/status")
    @moduletag skip: "there is no /proc/self/status"
  end

  setup do
    %{peer: Peer.start_link(%{args: [~c"+S", ~c"1"]})}
  end

  test "a file of 64 MB is hashed by 64 KiB in constant memory", %{peer: peer} do
    path =
      Path.join(
        System.tmp_dir!(),
        "tame_sha3_#{System.pid()}_#{System.unique_integer([:positive])}"
      )

    on_exit(fn -> File.rm(path) end)

    bytes =
      :binary.copy("64 bytes, and one more for a line that is no part of a block...\n", 1_000_000)

    File.write!(path, bytes)

    {grown, digest} = Peer.call(peer, Memory, :file_stream, [path, :sha3_256])
    assert digest == :tame_sha3.hash(:sha3_256, bytes)
    assert grown < 8 * @mb
  end

  test "states that nobody ends are freed", %{peer: peer} do
    for algorithm <- [:sha3_256, {:kt128, "custom"}, {:parallel_hash128, 8192, ""}],
        do:
          assert(
            {algorithm, Peer.call(peer, Memory, :states_without_end, [algorithm])} <
              {algorithm, 20 * @mb}
          )
  end

  test "calls that were ended leave nothing behind", %{peer: peer} do
    assert Peer.call(peer, Memory, :ended_calls) < 20 * @mb
  end
end
