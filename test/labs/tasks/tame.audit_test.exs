defmodule Mix.Tasks.Tame.AuditTest do
  # Not async: functions are called whose effect on their neighbours is looked at.
  use ExUnit.Case
  import ExUnit.CaptureIO

  alias Mix.Tasks.Tame.Audit
  alias Tame.AuditNatives
  alias Tame.Test.CLibrary

  setup_all do
    folder = Path.join(System.tmp_dir!(), "tame_audit_#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    AuditNatives.build!(folder, :audit_bad_nif)
    AuditNatives.build!(folder, :audit_load_nif, ["CRASH_ON_LOAD"])
    AuditNatives.build!(folder, :audit_open_nif, ["CRASH_ON_OPEN"])
    %{folder: folder}
  end

  # {standard output, standard error, exit status}
  defp audit(argv) do
    parent = self()

    err =
      capture_io(:stderr, fn ->
        out = capture_io(fn -> send(parent, {:status, status(argv)}) end)
        send(parent, {:out, out})
      end)

    assert_received {:status, status}
    assert_received {:out, out}
    {out, err, status}
  end

  defp status(argv) do
    Audit.run(argv)
    0
  catch
    :exit, {:shutdown, status} -> status
  end

  defp json(folder, argv) do
    path = Path.join(folder, "out.json")
    {_, _, status} = audit(argv ++ ["--json", path])
    {:ok, json} = path |> File.read!() |> :tame_json.decode()
    {json, status}
  end

  describe "static" do
    test "a library's table, what it can do, and nothing else in the JSON than the format names", %{
      folder: folder
    } do
      {json, 0} = json(folder, ["tame_exor"])
      assert Enum.sort(Map.keys(json)) == ~w(format libraries system targets tool warnings)
      assert %{"tool" => "tame.audit", "format" => 1, "targets" => []} = json
      [library] = json["libraries"]
      assert Enum.sort(Map.keys(library)) == ~w(can functions module nif_version path)

      assert %{"name" => "exor_dirty_nif", "arity" => 2, "kind" => "dirty_cpu"} in library[
               "functions"
             ]

      assert %{"name" => "exor_inline_nif", "arity" => 2, "kind" => "normal"} in library[
               "functions"
             ]

      assert %{
               "yields" => true,
               "charges" => true,
               "own_threads" => true,
               "resources" => "with destructors"
             } = library["can"]
    end

    test "everything on the code path, OTP's own among it", %{folder: folder} do
      # Those that crash would be named, and rightly so.
      true = :code.del_path(String.to_charlist(folder))
      on_exit(fn -> :code.add_pathz(String.to_charlist(folder)) end)
      # What it says is what is looked for when it fails.
      assert {out, "", 0} = audit(["--all"])
      for name <- ~w(crypto asn1rt_nif prim_file tame_exor), do: assert(out =~ ~r/^#{name}  /m)
      assert out =~ ~r/^\d+ libraries; functions: \d+ normal/m
    end

    test "a library of the emulator itself, and a folder of a release", %{folder: folder} do
      {%{"libraries" => [library]}, 0} = json(folder, ["prim_file"])
      assert %{"name" => "read_nif", "arity" => 2, "kind" => "dirty_io"} in library["functions"]

      {out, _, 0} = audit(["#{:code.root_dir()}/"])
      assert out =~ ~r/^crypto  /m
    end

    test "a module without NIFs says so" do
      assert {":lists has no NIFs: it is pure Erlang\n", "", 0} = audit(["lists"])
      assert {"application stdlib has no NIF library\n", "", 0} = audit(["stdlib"])
    end

    test "a library that crashes is named with its signal", %{folder: folder} do
      {out, err, 1} = audit(["audit_load_nif"])
      assert out =~ "stubborn/1"
      assert err =~ "audit_load_nif: loading it ended the VM with SIGABRT"
      path = Path.join(folder, "audit_open_nif.so")
      {_, err, 1} = audit([path])
      assert err =~ path
      assert err =~ "SIGBUS"
      assert length(String.split(err, "\n", trim: true)) == 1
    end

    test "what is no NIF library, stripped, or for another machine", %{folder: folder} do
      path = Path.join(folder, "audit_bad_nif.so")
      bytes = File.read!(path)
      stripped = Path.join(folder, "stripped.so")
      {_, 0} = System.cmd("strip", ["--strip-all", "-o", stripped, path])

      # The symbols that a library is loaded by are left to it, and it is read the same.
      assert functions(folder, stripped) == functions(folder, path)
      headless = Path.join(folder, "headless.so")
      File.write!(headless, without_sections(bytes))
      assert functions(folder, headless) == functions(folder, path)

      # Of these nothing can be read.
      cut = Path.join(folder, "cut.so")
      File.write!(cut, binary_part(bytes, 0, div(byte_size(bytes), 3)))
      {_, err, 1} = audit([cut])
      assert err =~ "#{cut} is not a shared library, or not a whole one"
      assert length(String.split(err, "\n", trim: true)) == 1

      nameless = Path.join(folder, "nameless.so")
      {_, 0} = System.cmd("objcopy", ["--remove-section=.dynsym", path, nameless])
      {_, err, 1} = audit([nameless])
      assert err =~ nameless
      assert length(String.split(err, "\n", trim: true)) == 1

      # The machine's number stands at byte 18; 183 is AArch64.
      <<front::binary-size(18), _::16, rest::binary>> = bytes
      other = Path.join(folder, "other.so")
      File.write!(other, <<front::binary, 183::16-little, rest::binary>>)
      {_, err, 1} = audit([other])
      assert err =~ "#{other} is built for another processor"

      text = Path.join(folder, "text.so")
      File.write!(text, "not a library")
      {_, err, 1} = audit([text])
      assert err =~ text

      File.write!(Path.join(folder, "plain.c"), "int plain(void) { return 1; }\nint plain(void);")
      plain = Path.join(folder, "plain2.so")

      File.write!(
        Path.join(folder, "plain2.c"),
        "int plain(void);\nint plain(void) { return 1; }\n"
      )

      {_, 0} = CLibrary.compile(folder, "plain2.c")
      {_, err, 1} = audit([plain])
      assert err =~ "#{plain} is no NIF library: it has no nif_init"
    end

    defp functions(folder, path) do
      {%{"libraries" => [library]}, 0} = json(folder, [path])
      Map.delete(library, "path")
    end

    # As sstrip leaves it: where the section headers are stands at byte 40, how many at byte 60.
    defp without_sections(bytes) do
      <<front::binary-size(40), _::64, middle::binary-size(12), _::16, rest::binary>> = bytes
      <<front::binary, 0::64, middle::binary, 0::16, rest::binary>>
    end

    test "what changed since a saved audit", %{folder: folder} do
      old = Path.join(folder, "old.json")
      {_, _, 0} = audit(["tame_thousand_cuts", "--json", old])
      assert {out, _, 0} = audit(["tame_thousand_cuts", "--diff", old])
      assert out =~ "nothing changed since"
      File.write!(old, old |> File.read!() |> String.replace("dirty_cpu", "normal"))
      assert {out, _, 0} = audit(["tame_thousand_cuts", "--diff", old])
      assert out =~ "tame_thousand_cuts: dirty_cpu_clock/0"
    end
  end

  describe "dynamic:" do
    @describetag timeout: 120_000

    defp target(folder, function, more) do
      {%{"targets" => [target]}, status} = json(folder, [function | more])
      {target, status}
    end

    defp script(folder, name, text) do
      path = Path.join(folder, name)
      File.write!(path, text)
      path
    end

    test "exor_inline blocks from some size on", %{folder: folder} do
      {target, 0} = target(folder, "tame_exor:exor_inline/2", ~w(--input binary))

      assert Enum.sort(Map.keys(target)) ==
               ~w(advice crosses_budget_at_bytes growth_exponent points target verdicts)

      assert ["blocks above " <> _ | _] = target["verdicts"]
      assert target["growth_exponent"] > 0.5
      assert target["crosses_budget_at_bytes"] > 100_000

      assert Enum.sort(Map.keys(hd(target["points"]))) ==
               ~w(bytes charge_ratio dirty_wait_max_us elapsed_us longest_slice_us neighbour_max_us slice_kind)
    end

    test "exor_yielding is well-behaved", %{folder: folder} do
      {target, 0} = target(folder, "tame_exor:exor_yielding/2", ~w(--input binary))
      assert ["well-behaved: " <> _] = target["verdicts"]
      assert target["crosses_budget_at_bytes"] == :null
    end

    # tame.h looks at its caller each 5 ms there; what is written by hand does not.
    test "exor_dirty is dirty, a stubborn NIF ignores a killed caller besides", %{folder: folder} do
      {target, 0} = target(folder, "tame_exor:exor_dirty/2", ~w(--input binary))
      assert ["dirty, holds its thread for " <> _] = target["verdicts"]
      assert List.last(target["points"])["slice_kind"] == "dirty"

      path = script(folder, "stubborn.exs", "fn size -> [min(div(size, 1024), 300)] end")
      {target, 0} = target(folder, "audit_bad_nif:stubborn/1", ["--input-file", path])
      assert ["dirty, holds " <> _, "ignores a killed caller: " <> _] = target["verdicts"]
    end

    test "a thousand cuts under-charge", %{folder: folder} do
      path = script(folder, "cut.exs", "fn size -> [min(div(size, 1024), 900)] end")
      {target, 0} = target(folder, "tame_thousand_cuts:cut/1", ["--input-file", path])
      assert ["under-charges: " <> _] = target["verdicts"]
      path = script(folder, "cuts.exs", "fn size -> [min(div(size, 256), 50_000)] end")
      {target, 0} = target(folder, "tame_thousand_cuts:cuts/1", ["--input-file", path])
      assert ["under-charges: " <> _ | _] = target["verdicts"]
    end

    test "a NIF that never returns is ended and named", %{folder: folder} do
      {out, err, 1} = audit(~w(audit_bad_nif:forever/1 --input binary --limit 2s))
      assert out =~ "does not return: ended with its VM after 2 s"
      assert err =~ "audit_bad_nif:forever/1 does not return"
      assert [] = Path.wildcard(Path.join(folder, "*.part"))
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
      {_, err, 1} = audit(~w(tame_thousand_cuts:nope/1 --input binary))
      assert err =~ "tame_thousand_cuts:nope/1: the module exports no such function"
    end
  end

  describe "a policy (--ci)" do
    @describetag timeout: 120_000

    test "names what falls short, in JUnit's form too", %{folder: folder} do
      ci = Path.join(folder, "tame.audit.exs")
      xml = Path.join(folder, "out.xml")

      File.write!(ci, """
      ["tame_thousand_cuts",
       {"tame_exor:exor_yielding/2", input: "binary", budget: "5ms", up_to: 4_000_000},
       {"tame_exor:exor_inline/2", input: "binary", budget: "100us", up_to: 70_000_000, allow: [:ignores_kill]},
       {"tame_exor:exor_inline/2", input: "binary", budget: "100us", up_to: 70_000_000, allow: [:blocks, :ignores_kill]}]
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
      assert cut =~ "tame_thousand_cuts:cut/1: under-charges: "
      assert crash =~ "audit_bad_nif:crash/1: crashes: ended the VM with SIGSEGV"

      {:ok, %{"targets" => [%{"points" => points} | _]}} =
        :tame_json.decode(File.read!(Path.join(folder, "ci.json")))

      assert Enum.map(points, & &1["bytes"]) == [1024, 4096]
    end

    test "a file that is none is one line", %{folder: folder} do
      path = Path.join(folder, "bad.exs")

      for {text, expected} <- [
            {"[]", "expected a list of checks, got: []"},
            {"[:x]", "expected a target or {target, options}, got: :x"},
            {~S([{"lists:seq/2", inputs: "x"}]),
             "lists:seq/2: unknown option inputs, expected some of: input, "},
            {~S([{"lists:seq/2", input: "list", allow: [:all]}]), "allow: unknown verdict :all"},
            {~S([{"lists:seq/2", input: "list", budget: 3}]), "duration 3: expected"},
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

  describe "a wrong command line is one line that names the value:" do
    for {argv, expected} <- [
          {[], "nothing to audit, expected: mix tame.audit MODULE"},
          {~w(no_such_module), "no_such_module: no application, module or folder"},
          {~w(/no/such.so), "there is no file /no/such.so"},
          {~w(--all crypto), "--all crypto: expected one of the two"},
          {~w(--all --budget 1ms), "--budget: does not go with --all"},
          {~w(lists:seq/2), "lists:seq/2: nothing to call it with"},
          {~w(lists:seq/x), "lists:seq/x: "},
          {~w(lists:seq/2 --input jsn), ~s(unknown generator "jsn")},
          {~w(lists:seq/2 --input list --budget 3), "duration 3: expected"},
          {~w(lists:seq/2 --input list --limit 0s), "duration 0s: expected"},
          {~w(lists:seq/2 --input list --input-file x.exs), "expected one of the two"},
          {~w(lists:seq/2 --input-file x.exs), "--input-file x.exs: there is no such file"},
          {~w(crypto --input list), "crypto: an input goes with a function"},
          {~w(crypto --diff /no/old.json), "cannot read /no/old.json: no such file"},
          {~w(crypto --diff mix.exs), "mix.exs: no JSON at byte 0"},
          {~w(crypto --junit x.xml), "--junit goes with --ci"},
          {~w(crypto --json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
          {~w(--ci /no/file.exs), "--ci /no/file.exs: there is no such file"},
          {~w(--nope), "unknown switch --nope, expected one of: --all"}
        ] do
      test Enum.join(argv, " ") do
        error = assert_raise Mix.Error, fn -> Audit.run(unquote(argv)) end
        assert error.message =~ unquote(expected)
        refute error.message =~ "\n"
      end
    end
  end
end
