defmodule Mix.Tasks.Tame.AuditTest do
  # What libraries can do, by their tables, and command lines that are wrong. Not async: the code path is set, and standard
  # error is captured.
  use ExUnit.Case
  import Tame.Test.{AuditTask, Refused, Schema}

  alias Mix.Tasks.Tame.Audit
  alias Tame.Test.CLibrary

  setup_all do
    %{
      folder:
        folder!(
          audit_bad_nif: [],
          audit_load_nif: ["CRASH_ON_LOAD"],
          audit_open_nif: ["CRASH_ON_OPEN"]
        )
    }
  end

  describe "static" do
    test "a library's table, what it can do, and nothing else in the JSON than the format names", %{
      folder: folder
    } do
      {json, 0} = json(folder, ["tame_exor"])
      assert_schema(Path.join(folder, "out.json"))
      assert %{"tool" => "tame.audit", "format" => 1, "targets" => []} = json
      [library] = json["libraries"]

      assert %{"name" => "exor_inline_nif", "arity" => 2, "kind" => "normal"} in library[
               "functions"
             ]

      assert %{
               "yields" => true,
               "charges" => true,
               "own_threads" => true,
               "resources" => "with destructors"
             } = library["can"]

      {%{"libraries" => [library]}, 0} = json(folder, ["tame_echo_nif"])

      assert %{"name" => "echo_dirty_cpu", "arity" => 1, "kind" => "dirty_cpu"} in library[
               "functions"
             ]
    end

    # OTP's and ours: what else is installed may be named as one that crashes or does not load, and rightly so.
    @known ~w(kernel stdlib compiler crypto asn1 elixir mix logger tame tame_labs)a

    test "everything on the code path, OTP's own among it" do
      path = :code.get_path()

      # Another test may have left a folder there that is gone; newer OTP sets no path with such a one.
      on_exit(fn -> true = :code.set_path(Enum.filter(path, &File.dir?/1)) end)
      true = :code.set_path(for name <- @known, do: :code.lib_dir(name) ++ ~c"/ebin")
      # What it says is what is looked for when it fails.
      assert {out, "", 0} = audit(["--all"])
      for name <- ~w(crypto asn1rt_nif prim_file tame_exor), do: assert(out =~ ~r/^#{name}  /m)
      assert out =~ ~r/^\d+ libraries; functions: \d+ normal/m
    end

    test "a library of the emulator itself", %{folder: folder} do
      {%{"libraries" => [library]}, 0} = json(folder, ["prim_file"])
      assert_schema(Path.join(folder, "out.json"))
      {out, _, 0} = audit(["prim_file"])
      assert out =~ ~r/^prim_file  built into the emulator$/m

      # Debian's OTP 29 hides the emulator's tables; up to 27 they are there.
      kind =
        if :tame_builtin.table(:prim_file) == :undefined do
          assert List.to_integer(:erlang.system_info(:otp_release)) > 27

          assert out =~
                   "the kind of its functions is unknown: this emulator does not show its tables"

          "unknown"
        else
          "dirty_io"
        end

      assert %{"name" => "read_nif", "arity" => 2, "kind" => kind} in library["functions"]
    end

    test "a folder of a release", %{folder: folder} do
      # As it lies in one: lib/NAME-VERSION.
      crypto = to_string(:code.lib_dir(:crypto))
      File.mkdir_p!(Path.join(folder, "release/lib"))
      File.ln_s!(crypto, Path.join([folder, "release/lib", Path.basename(crypto)]))
      {out, _, 0} = audit([Path.join(folder, "release/")])
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

    test "a FIFO is no library, by its name and in a folder, and nobody waits for it" do
      folder = Path.join(folder!([]), "odd")
      fifo = Path.join(folder, "fifo.so")
      File.mkdir_p!(folder)
      {_, 0} = System.cmd("mkfifo", [fifo])
      {_, err, 1} = audit([fifo])
      assert err =~ "#{fifo} is not a shared library"
      assert length(String.split(err, "\n", trim: true)) == 1
      assert {"no NIF libraries, and left out: fifo.so" <> _, "", 0} = audit([folder])
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

  test_refused(Audit, [
    {[], "nothing to audit, expected: mix tame.audit MODULE"},
    {~w(no_such_module), "no_such_module: no application, module or folder"},
    {~w(/no/such.so), "there is no file /no/such.so"},
    {~w(/no/such), "there is no folder /no/such"},
    {~w(/etc/passwd), "/etc/passwd is a file and no .so, expected module:function/arity, a .so"},
    {~w(--all crypto), "--all crypto: expected one of the two"},
    {~w(--all --budget 1ms), "--budget: does not go with --all"},
    {~w(lists:seq/2), "lists:seq/2: nothing to call it with"},
    {~w(lists:seq/x), "lists:seq/x: "},
    {~w(lists:seq/2 --input jsn), ~s(unknown generator "jsn")},
    {~w(lists:seq/2 --input list --budget 3), "budget 3: expected"},
    {~w(lists:seq/2 --input list --limit 0s), "limit 0s: expected"},
    {~w(lists:seq/2 --input list --input-file x.exs), "expected one of the two"},
    {~w(lists:seq/2 --input-file x.exs), "--input-file x.exs: there is no such file"},
    {~w(lists:seq/2 --input-file labs), "--input-file labs: a folder, expected a file"},
    {~w(erlang:abs/1 --input integer --up-to 10000000),
     "erlang:abs/1: up to 10000000 bytes: expected at most 262144"},
    {~w(crypto --input list), "crypto: input goes with a function"},
    {~w(crypto --budget 1ms), "crypto: budget goes with a function"},
    {~w(crypto --diff /no/old.json), "cannot read /no/old.json: no such file"},
    {~w(crypto --diff mix.exs), "mix.exs: no JSON at byte 0"},
    {~w(crypto --junit x.xml), "--junit goes with --ci"},
    {~w(--ci x.exs --json x.xml --junit ./x.xml), ~s("./x.xml": another output, "x.xml")},
    {~w(--all --junit x.xml), "--junit goes with --ci"},
    {~w(crypto --baseline x.exs), "--baseline goes with --ci"},
    {~w(crypto --json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(--ci /no/file.exs), "--ci /no/file.exs: there is no such file"},
    {~w(--nope), "unknown switch --nope, expected one of: --all"}
  ])
end
