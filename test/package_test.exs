defmodule Tame.PackageTest do
  # Tame as others get it: by path, by git, in releases, and where something is missing to build it.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package

  # What is native in a release. Modules are those of the tree.
  @natives ~w(tame_host tame_ring_nif.so)
  @erts "erts-#{:erlang.system_info(:version)}"

  @moduletag timeout: 300_000

  skip = fn there?, sentence ->
    unless there?, do: IO.puts("skip: package: " <> sentence)
    if there?, do: nil, else: sentence
  end

  @no_git skip.(System.find_executable("git") != nil, "there is no git")
  @no_root skip.(Tame.Test.Package.roots?(), "chroot and mount are not allowed here")

  defp package!(dir), do: unpack!(:tame, ".", Path.join(dir, "tame"))

  # The names in lib/tame-VERSION of a release, and their bytes together.
  defp tame_of(release) do
    assert [folder] = Path.wildcard(Path.join(release, "lib/tame-*"))
    files = Path.wildcard(Path.join(folder, "**"), match_dot: true) |> Enum.filter(&File.regular?/1)

    {Enum.sort(Enum.map(files, &Path.relative_to(&1, folder))),
     files |> Enum.map(&File.stat!(&1).size) |> Enum.sum()}
  end

  defp modules(pattern) do
    Path.wildcard(Path.join(:tame.source_dir(), pattern)) |> Enum.map(&Path.basename(&1, ".erl"))
  end

  defp expected(modules) do
    Enum.sort([
      "ebin/tame.app"
      | for(m <- modules, do: "ebin/#{m}.beam") ++ for(n <- @natives, do: "priv/#{@erts}/#{n}")
    ])
  end

  test "what Mix has built starts in plain erl, without Elixir" do
    ebin = :tame |> :code.which() |> Path.dirname()

    code = """
    {ok, Started} = application:ensure_all_started(tame),
    non_existing = code:which('Elixir.Kernel'),
    io:format("~w ~w", [Started, tame:info()]), halt().
    """

    args = ["-noinput", "-pa", ebin, "-eval", code]
    env = [{"ERL_LIBS", nil}, {"ERL_FLAGS", nil}, {"ERL_AFLAGS", nil}, {"ERL_ZFLAGS", nil}]
    assert {out, 0} = System.cmd("erl", args, env: env, stderr_to_stdout: true)
    assert out == "[tame] \#{}"
  end

  defp build(package, env \\ []) do
    otp = [
      {"ERLANG_ROOT_DIR", to_string(:code.root_dir())},
      {"ERLANG_ERTS_VER", to_string(:erlang.system_info(:version))}
    ]

    run(package, "sh", ["c_src/build.sh"], otp ++ env)
  end

  test "the version of the labs is that of the runtime" do
    version =
      Mix.Project.in_project(:tame_labs, "../labs", fn _ -> Mix.Project.config()[:version] end)

    assert version == to_string(:tame.version())
  end

  test "the lines that the README says to copy are those of the examples" do
    [_, install] = String.split(File.read!("../README.md"), "## Install\n")
    [install, _] = String.split(install, "\n## ", parts: 2)

    lines =
      Regex.scan(~r/^```(?:elixir|erlang)\n(.*?)\n```$/ms, install, capture: :all_but_first)
      |> List.flatten()

    files =
      ~w(isolated_app/mix.exs isolated_app/config/config.exs) ++
        ~w(isolated_app_rebar3/rebar.config isolated_app_rebar3/config/sys.config)

    for {line, file} <- Enum.zip(lines, files) do
      text = File.read!(Path.join("../examples", file))

      assert String.contains?(String.replace(text, "../..", "../tame"), line),
             "#{line} is not in #{file}"
    end

    assert length(lines) == length(files)
  end

  @tag needs: :jiffy
  @tag skip: @no_root
  test "a Mix release from the package isolates jiffy, and holds two natives and our modules, also alone in a root" do
    dir = tmp_dir!()
    package!(dir)
    app = example!("isolated_app", Path.join(dir, "app"), [{"mix.exs", "../..", "../tame"}])

    assert {_, 0} = run(app, "mix", ~w(deps.get), [{"MIX_ENV", "prod"}])
    assert {out, 0} = run(app, "mix", ~w(release), [{"MIX_ENV", "prod"}])
    refute out =~ "warning"

    release = Path.join(app, "_build/prod/rel/isolated_app")
    {names, bytes} = tame_of(release)
    assert names == expected(["Elixir.Tame" | modules("src/**/*.erl")])
    assert bytes < 1_000_000

    root = root!(Path.join(dir, "root"), release)
    # The release's own start, with an expression after it.
    env = "export RELEASE_DISTRIBUTION=none RELEASE_BOOT_SCRIPT_CLEAN=start LC_ALL=C.UTF-8"

    assert {out, 0} =
             in_root(root, "#{env}; /app/bin/isolated_app eval 'IO.inspect(IsolatedApp.demo())'")

    assert out =~ ~s(before: {:ok, %{"a" => 1}})
    assert out =~ ~s(later: {:ok, %{"a" => 1}})
    assert out =~ "same_process: false"
  end

  @tag needs: :jiffy
  @tag skip: @no_git || skip.(System.find_executable("rebar3") != nil, "there is no rebar3")
  test "a rebar3 release with tame from git isolates jiffy, and holds two natives and our modules" do
    dir = tmp_dir!()
    git = git!(package!(dir))
    dep = "{tame, {git, \"file://#{git}\", {branch, \"main\"}}}"

    app =
      example!("isolated_app_rebar3", Path.join(dir, "app"), [
        {"rebar.config", "[tame]", "[#{dep}]"}
      ])

    assert {_, 0} = run(app, "rebar3", ~w(release))
    {names, bytes} = tame_of(Path.join(app, "_build/default/rel/isolated_app"))
    assert names == expected(modules("src/**/*.erl"))
    assert bytes < 1_000_000
    assert {out, 0} = run(app, "sh", ["test.sh"])
    assert out =~ "{same_process, false}"
  end

  @tag skip: @no_git
  test "the labs are a dependency by git, below the runtime in the same repository" do
    dir = tmp_dir!()
    package = package!(dir)
    unpack!(:tame_labs, "labs", Path.join(package, "labs"))
    from = "git: \"#{git!(package)}\""

    deps =
      "{:tame, #{from}, override: true}, {:tame_labs, #{from}, subdir: \"labs\", only: [:dev, :test]}"

    app = app!(Path.join(dir, "app"), deps)

    assert {_, 0} = run(app, "mix", ~w(deps.get))
    assert {out, 0} = run(app, "mix", ~w(tame.latency --only nif_normal,isolated --iterations 100))
    refute out =~ "warning: :tame"
    assert out =~ ~r/^isolated +process/m

    assert {_, 0} = run(app, "mix", ~w(compile), [{"MIX_ENV", "prod"}])
    assert File.ls!(Path.join(app, "_build/prod/lib")) |> Enum.sort() == ~w(app tame)
  end

  test "a native part is built again for another OTP, and nothing is done when all is there" do
    package = package!(tmp_dir!())
    fast = [{"CFLAGS", "-O0"}]
    assert {out, 0} = build(package, fast)
    assert out =~ "building two native parts for #{String.replace(@erts, "-", " ")}"
    assert build(package, fast) == {"", 0}

    other = Path.join(package, "otp")
    File.mkdir_p!(other)
    File.ln_s!(Path.join(:code.root_dir(), @erts), Path.join(other, "erts-99.1"))

    assert {out, 0} =
             build(package, fast ++ [{"ERLANG_ROOT_DIR", other}, {"ERLANG_ERTS_VER", "99.1"}])

    assert out =~ "for erts 99.1"

    for erts <- [@erts, "erts-99.1"],
        do: assert(Enum.sort(File.ls!(Path.join([package, "priv", erts]))) == @natives)
  end

  test "what is missing is named in one line, with the packages that have it" do
    dir = tmp_dir!()
    package = package!(dir)
    all = ~w(Debian: Fedora: Alpine: macOS:)

    for {name, gone, sentence} <- [
          {"make", ~w(make), "there is no make on PATH"},
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

    both = path_without!(Path.join(dir, "both"), ~w(make cc))
    assert {out, 1} = build(package, [{"PATH", both}])
    assert [_, _] = String.split(out, "\n", trim: true)
  end

  test "without a compiler the project does not compile, and says why" do
    dir = tmp_dir!()
    package!(dir)
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
    assert {out, 1} = build(package!(dir), [{"CC", cc}])

    assert out =~
             "tame: the C compiler (#{cc}) does not compile a program with <stdio.h> and <linux/futex.h>. Debian:"

    assert out =~ "stdio.h: No such file or directory"
  end

  test "a system that tame does not run on is named in one line" do
    dir = tmp_dir!()
    package = package!(dir)

    script = fn folder, name, text ->
      path = Path.join(path_without!(Path.join(dir, folder), [name]), name)
      File.write!(path, "#!/bin/sh\n" <> text)
      File.chmod!(path, 0o755)
      {"PATH", Path.dirname(path)}
    end

    assert {"tame: this is Darwin, and tame runs on Linux only:" <> _ = line, 1} =
             build(package, [script.("macos", "uname", "echo Darwin\n")])

    assert [_] = String.split(line, "\n", trim: true)

    # As with musl: all is there but what glibc alone has.
    musl = "if grep -q execinfo.h; then exit 1; fi\n"

    assert {"tame: the C library is not glibc:" <> _ = line, 1} =
             build(package, [script.("musl", "cc", musl)])

    assert [_] = String.split(line, "\n", trim: true)
  end

  test "the compiler's errors are shown in full, and then one line of ours" do
    package = package!(tmp_dir!())
    source = Path.join(package, "c_src/ring/tame_ring_nif.c")
    File.write!(source, "#error broken here\n", [:append])
    assert {out, 1} = build(package, [{"CFLAGS", "-O0"}])
    assert out =~ "error: #error broken here"

    assert out |> String.trim() |> String.split("\n") |> List.last() =~
             "tame: the native parts do not build in "
  end

  test "a folder that cannot be written is named in one line" do
    package = package!(tmp_dir!())
    # As root any folder can be written; a file in its place cannot.
    File.write!(Path.join(package, "priv"), "")
    assert {out, 1} = build(package)
    assert [line] = String.split(out, "\n", trim: true)
    assert line =~ "tame: #{package} cannot be written"
  end
end
