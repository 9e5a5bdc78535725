defmodule Mix.Tasks.Tame.AuditCallsTest do
  # Functions that are called, and their verdicts. Not async: their effect on their neighbours is looked at.
  use ExUnit.Case
  import Tame.Test.{AuditTask, Schema}

  alias Tame.Audit.Peer
  alias Tame.AuditNatives

  # Their times are long enough by then.
  @to_1_mib ~w(--up-to 1048576)

  setup_all do
    %{folder: folder!(audit_bad_nif: [], audit_load_nif: ["CRASH_ON_LOAD"])}
  end

  # On a busy machine a caller may be killed too late, time and again: what its call does then is not measured.
  defp measured(target), do: target["verdicts"] -- not_measured(target)
  defp not_measured(target), do: Enum.filter(target["verdicts"], &(&1 =~ ~r/^not measured, /))

  test "exor_inline blocks from some size on", %{folder: folder} do
    {target, 0} =
      target(folder, "tame_exor:exor_inline/2", ~w(--input binary --budget 100us --up-to 16777216))

    assert_schema(Path.join(folder, "out.json"))
    assert ["blocks above " <> _ | _] = measured(target)
    assert target["growth_exponent"] > 0.25
    assert target["crosses_budget_at_bytes"] > 10_000
  end

  test "exor_yielding is well-behaved", %{folder: folder} do
    {target, 0} =
      target(folder, "tame_exor:exor_yielding/2", ~w(--input binary --budget 5ms --up-to 16777216))

    assert Enum.all?(measured(target), &String.starts_with?(&1, "well-behaved: "))
    assert target["crosses_budget_at_bytes"] == :null
  end

  # tame.h looks at its caller each 5 ms there; what is written by hand does not.
  test "exor_dirty is dirty, a stubborn NIF ignores a killed caller besides", %{folder: folder} do
    argv = ~w(--input binary --up-to 16777216 --budget 100us)
    {target, 0} = target(folder, "tame_exor:exor_dirty/2", argv)
    assert ["dirty, holds its thread for " <> _] = measured(target)
    assert List.last(target["points"])["slice_kind"] == "dirty"

    path = script(folder, "stubborn.exs", "fn size -> [div(size, 1024)] end")
    argv = ["--input-file", path, "--up-to", "524288"]
    {target, 0} = target(folder, "audit_bad_nif:stubborn/1", argv)
    assert ["dirty, holds " <> _ | killed] = measured(target)

    assert match?(["ignores a killed caller: " <> _], killed) or
             (killed == [] and not_measured(target) != [])
  end

  test "what holds a normal scheduler and then a dirty one is told of both", %{folder: folder} do
    {target, 0} = target(folder, "audit_bad_nif:twofold/1", ~w(--input binary --up-to 1024))

    told? = fn verdict -> Enum.any?(target["verdicts"], &String.starts_with?(&1, verdict)) end
    assert told?.("dirty, holds its thread for ")
    # Of the 60 ms those are taken off for which others may have had the core.
    assert [%{"other_slice_us" => us}] = target["points"]
    assert told?.("blocks above ") == us > 1500
  end

  test "a thousand cuts under-charge", %{folder: folder} do
    path = script(folder, "cut.exs", "fn size -> [min(div(size, 1024), 900)] end")
    assert under_charges?(folder, "tame_thousand_cuts:cut/1", path)
    path = script(folder, "cuts.exs", "fn size -> [min(div(size, 256), 50_000)] end")
    assert under_charges?(folder, "tame_thousand_cuts:cuts/1", path)
  end

  # On a busy virtual machine a call may seem long by what the hypervisor took: in one of three audits it does not.
  defp under_charges?(folder, function, path) do
    Enum.any?(1..3, fn _ ->
      {target, 0} = target(folder, function, ["--input-file", path | @to_1_mib])
      Enum.any?(target["verdicts"], &(&1 =~ ~r/^under-charges: /))
    end)
  end

  test "one of five calls that holds its scheduler blocks now and then", %{folder: folder} do
    {target, 0} = target(folder, "audit_bad_nif:at_times/1", ~w(--input binary --up-to 4096))
    assert [verdict] = Enum.filter(target["verdicts"], &(&1 =~ ~r/^(blocks|well|under)/))
    assert verdict =~ ~r/^blocks now and then: 1 of \d+ calls/
  end

  test "a NIF that never returns is ended and named", %{folder: folder} do
    {out, err, 1} = audit(~w(audit_bad_nif:forever/1 --input binary --limit 2s))
    assert out =~ "does not return: ended with its VM after 2 s"
    assert err =~ "audit_bad_nif:forever/1 does not return"
    assert [] = Path.wildcard(Path.join(folder, "*.part"))
  end

  test "what raises, hangs or is slow only in a row is named, and what others came to is kept", %{
    folder: folder
  } do
    bad = for name <- ~w(tired stuck slow_end), do: "audit_bad_nif:#{name}/1"
    argv = ["audit_bad_nif:picky/1" | bad] ++ ~w(--input binary --up-to 1024 --limit 2s)
    path = Path.join(folder, "row.json")
    {out, err, 1} = audit(argv ++ ["--json", path])

    assert err =~ ~r"^audit_bad_nif:tired/1: raised too_many on 1024 bytes .* called in a row$"m
    assert err =~ "audit_bad_nif:stuck/1 does not return"
    assert out =~ "it does so only when it is called in a row"
    {:ok, %{"targets" => [good | _] = targets}} = path |> File.read!() |> :tame_json.decode()
    assert ["well-behaved: " <> _] = good["verdicts"]
    assert %{"verdicts" => [_ | _]} = Enum.find(targets, &(&1["target"] =~ "slow_end"))
  end

  test "what ends its VM or hangs after the sizes does so, in JSON with when", %{folder: folder} do
    for {name, verdict, bytes, note} <- [
          {"crash_late", "crashes: ended the VM with SIGSEGV", 1024, "it is called in a row"},
          {"hang_late", "does not return: ended with its VM after 2 s", 1024,
           "it is called in a row"},
          {"crash_at_times", "crashes: ended the VM with SIGSEGV", 1024, "it is called in a row"},
          {"crash_killed", "crashes: ended the VM with SIGSEGV", 1024, "its caller is killed"},
          {"hang_killed", "does not return: ended with its VM after 2 s", 1024,
           "its caller is killed"}
        ] do
      argv = ["--input", "binary", "--up-to", "#{bytes}", "--limit", "2s"]
      {target, status} = target(folder, "audit_bad_nif:#{name}/1", argv)
      assert {name, status} == {name, 1}
      assert Enum.any?(target["verdicts"], &String.starts_with?(&1, verdict)), name
      refute Enum.any?(target["verdicts"], &(&1 =~ "well-behaved"))
      assert Enum.any?(target["notes"], &(&1 == "it does so only when #{note}")), name
    end

    assert_schema(Path.join(folder, "out.json"))
  end

  # That NIF ends its VM when its caller dies in its 80 ms.
  test "no caller is killed in a call but to see what comes of it" do
    {:ok, input} = Tame.Audit.Input.parse("binary")
    target = {:audit_bad_nif, :crash_killed, 1}
    spec = %{target: target, input: elem(input, 1), bytes: 1024, limit_ms: 1000}
    {:ok, peer} = Peer.start()
    on_exit(fn -> Peer.stop(peer) end)
    call = fn module, name, args -> Peer.call(peer, module, name, [spec | args], 60_000) end

    # 100 of these are no round within a second.
    rounds = [%{calls: 100, rounds: 1}]
    assert {:ok, {:error, {:slow, over}}} = call.(:tame_audit_memory, :rounds, rounds)
    assert over in 1..99
    loop = [%{ms: 10, callers: 2, dirty: :dirty_cpu}]
    assert {:ok, {:ok, _, _}} = call.(:tame_audit, :loop, loop)
    assert {:ok, {:ok, :over}} = call.(:tame_audit, :kill, [%{after_ms: 10_000, callers: 2}])

    assert {:error, "ended the VM with SIGSEGV"} =
             call.(:tame_audit, :kill, [%{after_ms: 1, callers: 2}])
  end

  test "a failure of the audit itself in one function loses nothing of the others" do
    {:ok, input} = Tame.Audit.Input.parse("binary")

    checks =
      for name <- [:crash, :picky],
          do: %{target: {:function, {:audit_bad_nif, name, 1}}, input: input, up_to: 1024}

    progress = fn %{what: what} -> if what =~ "crash", do: raise("no luck") end
    {:ok, result} = Tame.Audit.run(checks, [], progress)
    assert [%{target: "audit_bad_nif:picky/1"}] = result.targets
    assert ["audit_bad_nif:crash/1: the audit itself failed: " <> why] = result.failures
    assert why =~ "no luck"
  end

  test "a NIF that crashes is named with its signal" do
    {out, err, 1} = audit(~w(audit_bad_nif:crash/1 --input binary))
    assert out =~ "crashes: ended the VM with SIGSEGV at 1,024 bytes"
    assert err =~ "audit_bad_nif:crash/1 crashes: ended the VM with SIGSEGV"
    {_, err, 1} = audit(~w(audit_load_nif:crash/1 --input binary))
    assert err =~ "SIGABRT"
  end

  test "a generator that raises, or gives what it should not", %{folder: folder} do
    for {text, expected} <- [
          {"fn _ -> raise \"no luck\" end", "raised for 1024: no luck"},
          {"fn _ -> throw(:ball) end", "throw for 1024: :ball"},
          {"fn _ -> :x end", "gives x for 1024, expected a list of 1 arguments"},
          {":x", "its value is no function of a size"},
          {"fn _ ->", "generator.exs: "},
          {"raise \"at once\"", "at once"}
        ] do
      path = script(folder, "generator.exs", text)
      {_, err, 1} = audit(["tame_thousand_cuts:cut/1", "--input-file", path])
      assert err =~ expected
      assert length(String.split(err, "\n", trim: true)) == 1
    end

    {_, err, 1} = audit(~w(tame_thousand_cuts:cut/1 --input binary))
    assert err =~ "tame_thousand_cuts:cut/1: raised badarg on 1024 bytes of binary"
    assert err =~ "a handle for example, come from --input-file FILE"
    {_, err, 1} = audit(~w(tame_thousand_cuts:nope/1 --input binary))
    assert err =~ "tame_thousand_cuts:nope/1: the module exports no such function"
  end

  test "an input that does not end is not the NIF's", %{folder: folder} do
    path = script(folder, "endless.exs", "fn _ -> Process.sleep(:infinity) end")

    {_, err, 1} = audit(["audit_bad_nif:picky/1", "--input-file", path, "--limit", "2s"])

    assert err =~ "audit_bad_nif:picky/1: the input is not made within 2000 ms"
    refute err =~ "does not return"
  end

  test "memory that is kept is a leak, a cache that fills and a carrier are none", %{
    folder: folder
  } do
    for leaky <- ~w(leaky leaky_malloc) do
      {target, 0} = target(folder, "audit_bad_nif:#{leaky}/1", ~w(--input binary --up-to 1024))
      # 64 bytes, and what the allocator needs for a block.
      assert ["leaks " <> text] = Enum.filter(target["verdicts"], &(&1 =~ "leaks"))
      assert {bytes, " bytes a call: " <> _} = Integer.parse(text)
      assert bytes in 64..128
    end

    for {leaky, expected} <- [
          {"leaky_little", ~r/^leaks \d+ bytes/},
          {"leaky_shared", ~r/^leaks \d+,\d+ bytes/},
          {"leaky_descriptor", ~r/^leaks 1 descriptors a call/}
        ] do
      {target, 0} = target(folder, "audit_bad_nif:#{leaky}/1", ~w(--input binary --up-to 1024))
      assert Enum.any?(target["verdicts"], &(&1 =~ expected)), "#{leaky}: #{target["verdicts"]}"
    end

    {target, 0} = target(folder, "audit_bad_nif:thrifty/1", ~w(--input binary --up-to 1024))
    refute Enum.any?(target["verdicts"], &(&1 =~ "leaks"))
  end

  test "what a NIF prints is not in the audit's way, and not in its output" do
    {out, "", 0} = audit(~w(audit_bad_nif:chatty/1 --input binary --up-to 4096))
    assert out =~ ~r/^audit_bad_nif:chatty\/1  on binary/m
    refute out =~ "chatty says"
    refute out =~ "chatty\n"
  end

  test "the largest size is the one that was named", %{folder: folder} do
    for {up_to, sizes} <- [{"5000", [1024, 4096, 5000]}, {"10", [10]}] do
      argv = ["--input", "binary", "--up-to", up_to]
      {target, 0} = target(folder, "audit_bad_nif:picky/1", argv)
      assert for(point <- target["points"], do: point["bytes"]) == sizes
    end
  end

  test "one that takes no larger input is inconclusive from there on", %{folder: folder} do
    {target, 0} = target(folder, "audit_bad_nif:picky/1", ~w(--input binary))
    verdicts = Enum.filter(target["verdicts"], &(&1 =~ ~r/^(well|inc)/))
    assert ["inconclusive above 4,096 bytes: raised badarg on 16384 bytes of binary"] = verdicts
  end

  test "an application that loads its module's NIFs is started, and named", %{folder: folder} do
    AuditNatives.build_lazy!(folder, [])
    {out, "", 0} = audit(~w(lazy_nif:picky/1 --input binary --up-to 1024))
    assert out =~ "the application lazy was started: it may load the library"

    AuditNatives.build_lazy!(folder, [:no_such_application])
    {_, err, 1} = audit(~w(lazy_nif:picky/1 --input binary --up-to 1024))
    assert err =~ "raised not_loaded on 1024 bytes"
    assert err =~ "the application lazy, which may load the library, does not start"
    assert length(String.split(err, "\n", trim: true)) == 1
  end
end
