defmodule Tame.ThreadsTest do
  # Every row of Tame.ThreadsTable is done on every kind of thread, in a VM of its own: what works there gives the right
  # terms, and what ends a VM ends it. docs/reference/threads.md has the same rows.
  use ExUnit.Case, async: true

  alias Tame.{JobProbe, Threads, ThreadsTable}
  alias Tame.Test.{CLibrary, PeerVm}

  @rows Enum.with_index(ThreadsTable.rows())

  # What enif_thread_type says of the thread. A callback comes on a normal scheduler, whatever let go of the resource.
  @threads %{
    normal: :normal,
    dirty_cpu: :dirty_cpu,
    dirty_io: :dirty_io,
    thread: :none,
    dtor: :normal,
    dtor_thread: :normal,
    down: :normal,
    stop: :normal
  }

  # All sizes on these, the emulator's turning points on the others.
  @whole [:dirty_cpu, :thread]
  @few for(n <- [0, 32, 33, 128, 129, 1000], do: {:map, n}) ++
         [{:binary, 64}, {:binary, 65}, :nested_maps, :bignum, :deep]

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{library: JobProbe.build(folder, "threads")}
  end

  test "the document has these rows" do
    assert ThreadsTable.written() == ThreadsTable.markdown()
  end

  test "the table knows every kind of thread" do
    assert Enum.sort(Map.keys(@threads)) == Enum.sort(Threads.kinds())
  end

  for kind <- Threads.kinds() do
    test "what works on this kind of thread gives the right terms: #{kind}", context do
      kind = unquote(kind)
      peer = start_peer(context)

      for {row, _} <- @rows,
          ThreadsTable.on(row, kind) != :ends or ThreadsTable.ends?(row) == false,
          op <- row.ops do
        assert {op, run(peer, kind, op, sizes(row, kind))} == {op, {[@threads[kind]], []}}
      end
    end

    test "the destructor of a resource that ended here runs on a normal scheduler: #{kind}",
         context do
      assert :peer.call(start_peer(context), Threads, :dtor_of, [unquote(kind)]) == :normal
    end
  end

  for {row, index} <- @rows, Map.has_key?(row, :ends) do
    test "#{row.what}: ends the VM, where it says so", context do
      {row, _} = Enum.at(@rows, unquote(index))

      for kind <- row.ends,
          expected = ThreadsTable.ends?(row),
          op <- row.ops,
          size <- Map.get(row, :only, [:all]) do
        peer = start_peer(context)
        sizes = if size == :all, do: :all, else: [size]
        outcome = run(peer, kind, op, sizes)

        if expected == :unknown do
          # Not known to be mended: then it ends the VM, or it is right.
          assert {kind, size, outcome} in [
                   {kind, size, :ended},
                   {kind, size, {[@threads[kind]], []}}
                 ]
        else
          assert {kind, size, outcome} == {kind, size, :ended}
        end
      end
    end
  end

  defp sizes(%{only: only}, _kind), do: only

  defp sizes(row, kind) do
    case {Map.get(row, :except, []), kind in @whole} do
      {[], true} -> :all
      {except, true} -> {:except, except}
      {except, false} -> {:few, @few -- except}
    end
  end

  defp run(peer, kind, op, sizes) do
    :peer.call(peer, Threads, :run, [kind, op, sizes], 600_000)
  catch
    :exit, _ -> :ended
  end

  # Not linked: it may end.
  defp start_peer(%{library: library}) do
    env = [
      {~c"TAME_THREADS_LIBRARY", to_charlist(library)},
      {~c"ERL_CRASH_DUMP_SECONDS", ~c"0"}
    ]

    PeerVm.start(%{env: env})
  end
end
