defmodule Tame.Tcp.FullTableTest do
  # ENFILE: the system has no room for another file. In a VM of its own, to which that is pretended.
  use ExUnit.Case, async: true

  test "no room for a file is said, as gen_tcp says it, and the connection is there when there is some" do
    folder = Path.join(System.tmp_dir!(), "tame_tcp_full_#{System.pid()}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    library = Path.join(folder, "full_table.so")
    source = Path.join(__DIR__, "support/c/full_table.c")
    flags = ~w(-std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -o)

    assert {"", 0} =
             System.cmd("cc", flags ++ [library, source],
               stderr_to_stdout: true,
               env: [{"LD_PRELOAD", nil}]
             )

    switch = Path.join(folder, "full")
    # A sanitizer's library has to be the first.
    preload = String.trim("#{System.get_env("LD_PRELOAD")} #{library}")

    {:ok, peer, _} =
      :peer.start_link(%{
        connection: :standard_io,
        env: [
          {~c"LD_PRELOAD", to_charlist(preload)},
          {~c"FULL_TABLE", to_charlist(switch)}
        ],
        args: Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
      })

    {answers, more, sent} = :peer.call(peer, Tame.Tcp.Test.FullTable, :run, [switch], 600_000)
    assert answers == List.duplicate({:error, :enfile}, 5)
    assert {more, sent} == {0, {:ok, "x"}}
    :peer.stop(peer)
  end
end
