defmodule Mix.Tasks.Tame.AuditPolicyTest do
  # A policy (--ci) and its baseline. Not async: the effect of functions on their neighbours is looked at.
  use ExUnit.Case
  import Tame.Test.{AuditTask}

  alias Mix.Tasks.Tame.Audit

  setup_all do
    %{folder: folder!(audit_bad_nif: [])}
  end

  test "names what falls short, in JUnit's form too", %{folder: folder} do
    ci = Path.join(folder, "tame.audit.exs")
    xml = Path.join(folder, "out.xml")

    # On a busy machine a caller may be killed too late, which is not what is tested.
    File.write!(ci, """
    ["tame_thousand_cuts",
     {"tame_exor:exor_yielding/2", input: "binary", budget: "5ms", up_to: 4_000_000, allow: [:not_measured]},
     {"tame_exor:exor_inline/2", input: "binary", budget: "100us", up_to: 20_000_000, allow: [:ignores_kill, :not_measured]},
     {"tame_exor:exor_inline/2", input: "binary", budget: "100us", up_to: 20_000_000,
      allow: [:blocks, :ignores_kill, :not_measured]}]
    """)

    {out, err, 1} = audit(["--ci", ci, "--junit", xml])

    assert [
             "holds  tame_thousand_cuts" <> _,
             "holds  tame_exor:exor_yielding/2" <> _,
             "holds " <> _
           ] = String.split(out, "\n", trim: true)

    assert ["tame_exor:exor_inline/2: blocks above " <> _] =
             err
             |> String.split("\n", trim: true)
             |> Enum.map(&String.replace(&1, ~r/\e\[\d*m/, ""))

    assert {root, []} = :xmerl_scan.file(String.to_charlist(xml))
    assert elem(root, 1) == :testsuites
    assert File.read!(xml) =~ ~s(<testsuites tests="4" failures="1")

    # Two verdicts of one check are one line, and no size above the bound is tried.
    File.write!(
      ci,
      ~S([{"tame_thousand_cuts:cut/1", input: "=900", up_to: 4096}, {"audit_bad_nif:crash/1", input: "list"}])
    )

    {_, err, 1} = audit(["--ci", ci, "--json", Path.join(folder, "ci.json")])
    assert [cut, crash] = String.split(err, "\n", trim: true)

    # On a busy machine one slice may be long as well; where a call held its scheduler in a row of them, what calls charge
    # is not looked for.
    assert cut =~ ~r"^tame_thousand_cuts:cut/1: .*(under-charges|blocks now and then): "
    assert crash =~ "audit_bad_nif:crash/1: crashes: ended the VM with SIGSEGV"

    {:ok, %{"targets" => [%{"points" => points} | _]}} =
      :tame_json.decode(File.read!(Path.join(folder, "ci.json")))

    assert Enum.map(points, & &1["bytes"]) == [1024, 4096]
  end

  test "what ends its VM, or cannot be measured, after all sizes falls short", %{folder: folder} do
    ci =
      script(folder, "late.exs", """
      [{"audit_bad_nif:crash_late/1", input: "binary", up_to: 1024},
       {"audit_bad_nif:tired_late/1", input: "binary", up_to: 1024, allow: [:under_charges]}]
      """)

    assert {"", err, 1} = audit(["--ci", ci])
    assert err =~ "audit_bad_nif:crash_late/1: crashes: ended the VM with SIGSEGV"

    assert err =~
             "audit_bad_nif:tired_late/1: not measured, whether it leaks: raised too_many on 1024 bytes"
  end

  test "accepted findings hold, and those that are gone are stale", %{folder: folder} do
    ci = script(folder, "accepting.exs", ~S([{"audit_bad_nif:picky/1", input: "binary"}]))

    entry = fn text, verdict ->
      ~s({"#{text}", #{inspect(verdict)}, date: "2026-11-22", reason: "small inputs"})
    end

    accept = fn entries -> script(folder, "baseline.exs", "[#{Enum.join(entries, ", ")}]") end

    {_, err, 1} = audit(["--ci", ci])
    assert err =~ "audit_bad_nif:picky/1: inconclusive above 4,096 bytes"

    # What a busy machine may make of so short a function is accepted too.
    all = ~w(inconclusive not_measured blocks under_charges dirty leaks ignores_kill)a

    path = accept.([entry.("m:f/1", :blocks) | Enum.map(all, &entry.("audit_bad_nif:picky/1", &1))])

    {out, "", 0} = audit(["--ci", ci, "--baseline", path])
    assert out =~ ~r/^holds  audit_bad_nif:picky\/1/m
    assert out =~ "stale  m:f/1: blocks, accepted on 2026-11-22 (small inputs), is of no check\n"

    assert out =~
             "stale  audit_bad_nif:picky/1: dirty, accepted on 2026-11-22 (small inputs), was not found\n"

    refute out =~ "stale  audit_bad_nif:picky/1: inconclusive"
  end

  test "a baseline that is none is one line", %{folder: folder} do
    ci = script(folder, "ci.exs", ~S(["crypto"]))

    for {text, expected} <- [
          {"[]", "expected a list of accepted findings, got: []"},
          {"[:x]", "expected {target, verdict, date: ..., reason: ...}, got: :x"},
          {~S([{"m:f/1", :nope, []}]), "m:f/1: unknown verdict :nope, expected one of: blocks, "},
          {~S([{"m:f/1", :crashes, []}]), "m:f/1: unknown verdict :crashes"},
          {~S([{"m:f/1", :blocks, :x}]), "m:f/1: expected date: and reason:, got: :x"},
          {~S([{"m:f/1", :blocks, why: "x"}]), "m:f/1: unknown option why"},
          {~S([{"m:f/1", :blocks, reason: "x"}]), "m:f/1: date: expected a day"},
          {~S([{"m:f/1", :blocks, date: "yesterday", reason: "x"}]), ~S(got: "yesterday")},
          {~S([{"m:f/1", :blocks, date: ~D[2026-11-22], reason: " "}]),
           "m:f/1: reason: expected why it is accepted"},
          {"[", "baseline.exs: "}
        ] do
      path = script(folder, "baseline.exs", text)
      error = assert_raise Mix.Error, fn -> Audit.run(["--ci", ci, "--baseline", path]) end
      assert error.message =~ expected
      refute error.message =~ "\n"
    end

    argv = ["--ci", ci, "--baseline", "/no/file.exs"]
    error = assert_raise Mix.Error, fn -> Audit.run(argv) end
    assert error.message == "--baseline /no/file.exs: there is no such file"
  end

  test "a file that is none is one line", %{folder: folder} do
    path = Path.join(folder, "bad.exs")

    for {text, expected} <- [
          {"[]", "expected a list of checks, got: []"},
          {"[:x]", "expected a target or {target, options}, got: :x"},
          {~S([{"lists:seq/2", inputs: "x"}]),
           "lists:seq/2: unknown option inputs, expected some of: input, "},
          {~S([{"lists:seq/2", input: "list", allow: [:all]}]), "allow: unknown verdict :all"},
          {~S([{"lists:seq/2", input: "list", budget: 3}]), "budget 3: expected"},
          {~S([{"lists:seq/2", input: "list", up_to: 0}]), "up_to: expected a whole number"},
          {~S(["lists:seq/2"]), "nothing to call it with"},
          {~S(raise "boom"), "bad.exs: boom"}
        ] do
      File.write!(path, text)
      error = assert_raise Mix.Error, fn -> Audit.run(["--ci", path]) end
      assert error.message =~ expected
      refute error.message =~ "\n"
    end
  end
end
