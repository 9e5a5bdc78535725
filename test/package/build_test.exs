defmodule Tame.Package.BuildTest do
  # How the package builds its native parts in a project that depends on it, and what it says where something is missing.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package

  @erts "erts-#{:erlang.system_info(:version)}"

  defp build(package, env \\ []) do
    otp = [
      {"ERLANG_ROOT_DIR", to_string(:code.root_dir())},
      {"ERLANG_ERTS_VER", to_string(:erlang.system_info(:version))}
    ]

    run(package, "sh", ["c_src/build.sh"], otp ++ env)
  end

  test "a native part is built again for another OTP, and nothing is done when all is there" do
    package = tame!(tmp_dir!())
    fast = [{"CFLAGS", "-O0"}]
    assert {out, 0} = build(package, fast)
    assert out =~ "building native parts for #{String.replace(@erts, "-", " ")}"
    assert build(package, fast) == {"", 0}

    other = Path.join(package, "otp")
    File.mkdir_p!(other)
    File.ln_s!(Path.join(:code.root_dir(), @erts), Path.join(other, "erts-99.1"))

    assert {out, 0} =
             build(package, fast ++ [{"ERLANG_ROOT_DIR", other}, {"ERLANG_ERTS_VER", "99.1"}])

    assert out =~ "for erts 99.1"

    for erts <- [@erts, "erts-99.1"],
        do: assert(Enum.sort(File.ls!(Path.join([package, "priv", erts]))) == natives())
  end

  # A compiler for `machine`, as a script: it writes each call into `log`, and files that name the machine.
  defp compiler!(path, machine, log) do
    File.write!(path, """
    #!/bin/sh
    [ "$1" = -dumpmachine ] && echo #{machine} && exit
    echo "$*" >>#{log}
    for word; do [ "$before" = -o ] && echo #{machine} >"$word"; before=$word; done
    exit 0
    """)

    File.chmod!(path, 0o755)
    path
  end

  # What a build made in priv, by the calls of its compiler.
  defp made(log) do
    calls = File.read!(log)
    File.rm!(log)
    found = Regex.scan(~r"/priv/erts-[^/]+/(\S+)\.new", calls, capture: :all_but_first)
    Enum.sort(List.flatten(found))
  end

  test "all is built anew for another compiler, another machine and other flags, and once" do
    dir = tmp_dir!()
    package = tame!(dir)
    log = Path.join(dir, "log")
    one = compiler!(Path.join(dir, "one"), "x86_64-linux-gnu", log)
    other = compiler!(Path.join(dir, "other"), "aarch64-linux-gnu", log)

    for env <- [
          [{"CC", one}],
          [{"CC", other}],
          [{"CC", one}],
          [{"CC", one}, {"CFLAGS", "-O1 '-DNAME=\"a b\"'"}],
          [{"CC", one}, {"CFLAGS", "-O3"}],
          [{"CC", one}, {"CFLAGS", "-O3"}, {"CPPFLAGS", "-DONE"}],
          [{"CC", one}, {"CFLAGS", "-O3"}, {"LDFLAGS", "-Wl,-z,now"}]
        ] do
      assert {out, 0} = build(package, env)
      assert out =~ "tame: building native parts", inspect(env)
      assert made(log) == natives(), inspect(env)
      assert build(package, env) == {"", 0}
      refute File.exists?(log)
    end

    # A make of the same tree goes by the same.
    flags = [{"CFLAGS", "-O3"}]
    assert {_, 0} = run(package, "make", ~w(-s -C c_src), [{"CC", other} | flags])
    assert made(log) == natives()
    assert build(package, [{"CC", other} | flags]) == {"", 0}

    # The compiler of that name compiles for another machine now.
    compiler!(other, "riscv64-linux-gnu", log)
    assert {_, 0} = build(package, [{"CC", other} | flags])
    assert made(log) == natives()

    # What is there stays there.
    assert {out, 1} = build(package, [{"CC", "no-such-gcc"} | flags])
    assert [line] = String.split(out, "\n", trim: true)
    assert line =~ "tame: there is no C compiler on PATH (no-such-gcc)"
    assert build(package, [{"CC", other} | flags]) == {"", 0}
  end

  @tag skip: no_git()
  test "a dependency by git has natives of each target that Mix builds it for" do
    dir = tmp_dir!()
    package = tame!(dir)
    # What compiles is not what is looked at.
    for file <- Path.wildcard(Path.join(package, "{src,lib}/**/*.{erl,ex}")), do: File.rm!(file)
    app = app!(Path.join(dir, "app"), "{:tame, git: \"#{git!(package)}\"}")
    assert {_, 0} = run(app, "mix", ~w(deps.get))
    machines = [{"host", "x86_64-linux-gnu"}, {"rpi4", "aarch64-linux-gnu"}]

    for {target, machine} <- machines ++ machines do
      cc = compiler!(Path.join(dir, machine), machine, Path.join(dir, "log"))
      assert {_, 0} = run(app, "mix", ["compile"], [{"MIX_TARGET", target}, {"CC", cc}])
    end

    for {build, {_, machine}} <- Enum.zip(["dev", "rpi4_dev"], machines), native <- natives() do
      priv = Path.join([app, "_build", build, "lib/tame/priv"])
      assert File.read!(Path.join([priv, @erts, native])) == machine <> "\n"
    end
  end

  test "what is built needs no compiler, where none is asked for or the one that built it is gone" do
    dir = tmp_dir!()
    package = tame!(dir)
    log = Path.join(dir, "log")
    bin = path_without!(Path.join(dir, "bin"), ~w(cc))
    cc = compiler!(Path.join(bin, "cc"), "x86_64-linux-gnu", log)

    for env <- [[{"PATH", bin}], [{"PATH", bin}, {"CC", cc}]] do
      compiler!(cc, "x86_64-linux-gnu", log)
      assert {_, 0} = build(package, env)
      assert made(log) == natives()
      File.rm!(cc)
      assert build(package, env) == {"", 0}
    end

    assert build(package, [{"PATH", bin}, {"CC", ""}]) == {"", 0}
  end

  test "CPPFLAGS, CFLAGS and LDFLAGS reach what compiles and what links, and so does the look for headers" do
    dir = tmp_dir!()
    log = Path.join(dir, "log")
    cc = compiler!(Path.join(dir, "cc"), "x86_64-linux-gnu", log)
    flags = [{"CPPFLAGS", "-DPRE"}, {"CFLAGS", "-O1"}, {"LDFLAGS", "-Wl,-z,now"}]
    assert {_, 0} = build(tame!(dir), [{"CC", cc} | flags])
    calls = for call <- File.stream!(log), do: String.split(call)
    {compiled, linked} = Enum.split_with(calls, &("-c" in &1))
    assert compiled != [] and linked != []
    for call <- calls, do: assert(["-DPRE", "-O1"] -- call == [], inspect(call))
    for call <- linked, do: assert("-Wl,-z,now" in call, inspect(call))
    for call <- compiled, do: refute("-Wl,-z,now" in call, inspect(call))
  end

  @tag skip: skip(System.find_executable("flock") != nil, "there is no flock")
  test "a build by make and one by Mix or rebar3 at the same time are one after the other" do
    dir = tmp_dir!()
    package = tame!(dir)
    {cc, log} = {Path.join(dir, "cc"), Path.join(dir, "log")}

    # Writes down what it makes.
    File.write!(cc, """
    #!/bin/sh
    for word; do [ "$before" = -o ] && echo "$word" >>#{log}; before=$word; done
    exec cc "$@"
    """)

    File.chmod!(cc, 0o755)
    env = [{"CFLAGS", "-O0"}, {"CC", cc}]
    make = Task.async(fn -> run(package, "make", ~w(-s -j2 -C c_src), env) end)
    assert {_, 0} = build(package, env)
    assert {_, 0} = Task.await(make, :infinity)
    made = for path <- String.split(File.read!(log)), path =~ "/build/erts-", do: Path.expand(path)
    assert made != []
    assert made -- Enum.uniq(made) == []
    assert Enum.sort(File.ls!(Path.join([package, "priv", @erts]))) == natives()
  end

  test "a path with a space is told in one line" do
    dir = Path.join(tmp_dir!(), "a b")
    assert {out, 1} = build(tame!(dir))
    assert [line] = String.split(out, "\n", trim: true)
    assert line =~ "tame: #{dir}/tame has a space in its path"
  end

  test "what is missing is named in one line, with the packages that have it" do
    dir = tmp_dir!()
    package = tame!(dir)
    all = ~w(Debian: Fedora: Alpine: macOS:)

    for {name, gone, sentence} <- [
          {"make", ~w(make gmake), "there is no make on PATH"},
          {"cc", ~w(cc), "there is no C compiler on PATH (cc)"}
        ] do
      assert {out, 1} = build(package, [{"PATH", path_without!(Path.join(dir, name), gone)}])
      assert [line] = String.split(out, "\n", trim: true)
      assert line =~ "tame: " <> sentence
      for word <- all, do: assert(line =~ word)
    end

    assert {out, 1} = build(package, [{"ERLANG_ROOT_DIR", "/nowhere"}])
    assert [line] = String.split(out, "\n", trim: true)

    assert line =~
             "tame: there is no erl_nif.h in /nowhere/#{@erts}/include. Debian: apt-get install erlang-dev;"

    for word <- all, do: assert(line =~ word)

    both = path_without!(Path.join(dir, "both"), ~w(make gmake cc))
    assert {out, 1} = build(package, [{"PATH", both}])
    assert [_, _] = String.split(out, "\n", trim: true)
  end

  test "without a compiler the project does not compile, and says why" do
    dir = tmp_dir!()
    tame!(dir)
    path = path_without!(Path.join(dir, "bin"), ~w(cc))
    app = app!(Path.join(dir, "app"), "{:tame, path: \"../tame\"}")
    assert {out, status} = run(app, "mix", ~w(compile), [{"PATH", path}])
    assert status != 0
    assert out =~ "tame: there is no C compiler on PATH"
  end

  test "a C compiler without headers is told from none, and shows its own words" do
    dir = tmp_dir!()
    cc = Path.join(dir, "cc")
    File.write!(cc, "#!/bin/sh\necho 'stdio.h: No such file or directory' >&2\nexit 1\n")
    File.chmod!(cc, 0o755)
    assert {out, 1} = build(tame!(dir), [{"CC", cc}])

    assert out =~
             "tame: the C compiler (#{cc}) does not compile a program with <stdio.h> and <linux/futex.h>. Debian:"

    assert out =~ "stdio.h: No such file or directory"
  end

  test "a system on which tame is not tested, or does not run, is named in one line" do
    dir = tmp_dir!()
    package = tame!(dir)

    scripts = fn folder, texts ->
      folder = path_without!(Path.join(dir, folder), Keyword.keys(texts) |> Enum.map(&to_string/1))

      for {name, text} <- texts do
        path = Path.join(folder, to_string(name))
        File.write!(path, "#!/bin/sh\n" <> text)
        File.chmod!(path, 0o755)
      end

      {"PATH", folder}
    end

    # It goes on to build: a make that has something to do, and does it.
    make = "case $* in *' -q') exit 1 ;; esac\n"
    macos = scripts.("macos", uname: "echo Darwin\n", make: make, gmake: "exec make \"$@\"\n")
    assert {out, 0} = build(package, [macos])

    assert ["tame: this is Darwin, where tame is not tested" <> _, "tame: building" <> _] =
             String.split(out, "\n", trim: true)

    # As with musl: all is there but what glibc alone has.
    musl = "if grep -q execinfo.h; then exit 1; fi\n"

    assert {"tame: the C library is not glibc:" <> _ = line, 1} =
             build(package, [scripts.("musl", cc: musl)])

    assert [_] = String.split(line, "\n", trim: true)
  end

  test "the compiler's errors are shown in full, and then one line of ours" do
    package = tame!(tmp_dir!())
    source = Path.join(package, "c_src/ring/tame_ring_nif.c")
    File.write!(source, "#error broken here\n", [:append])
    assert {out, 1} = build(package, [{"CFLAGS", "-O0"}])
    assert out =~ "error: #error broken here"

    assert out |> String.trim() |> String.split("\n") |> List.last() =~
             "tame: the native parts do not build in "
  end

  test "a folder that cannot be written is named in one line" do
    package = tame!(tmp_dir!())
    # As root any folder can be written; a file in its place cannot.
    File.write!(Path.join(package, "priv"), "")
    assert {out, 1} = build(package)
    assert [line] = String.split(out, "\n", trim: true)
    assert line =~ "tame: #{package} cannot be written"
  end
end
