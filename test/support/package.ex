defmodule Tame.Test.Package do
  @moduledoc false
  # The package as a registry would hand it out, projects that depend on it, and a root with nothing but a release.

  @root Path.expand("../..", __DIR__)

  # The files that mix.exs names for a package of what lies in `source`, in `folder`.
  def unpack!(source, folder) do
    for file <- config(source)[:package][:files],
        from = Path.join([@root, source, file]),
        File.exists?(from) do
      to = Path.join(folder, file)
      File.mkdir_p!(Path.dirname(to))
      File.cp_r!(from, to)
    end

    folder
  end

  # The package of tame, in dir/tame.
  def tame!(dir), do: unpack!(".", Path.join(dir, "tame"))

  # What a mix.exs of ours says. Read in a VM of its own, once: Mix would change the folder of this one, in which other tests
  # run.
  def config(source) do
    key = {__MODULE__, source}

    with nil <- :persistent_term.get(key, nil) do
      read =
        "Mix.start(); Code.require_file(\"mix.exs\"); " <>
          "Mix.Project.config() |> Keyword.take([:version, :package]) |> inspect(limit: :infinity) |> IO.puts()"

      {text, 0} = run(Path.join(@root, source), "elixir", ["-e", read])
      {config, _} = Code.eval_string(text)
      :persistent_term.put(key, config)
      config
    end
  end

  # {names of the files in lib/tame-VERSION of a release, their bytes together}
  def tame_of(release) do
    [folder] = Path.wildcard(Path.join(release, "lib/tame-*"))
    files = Path.wildcard(Path.join(folder, "**"), match_dot: true) |> Enum.filter(&File.regular?/1)

    {Enum.sort(Enum.map(files, &Path.relative_to(&1, folder))),
     files |> Enum.map(&File.stat!(&1).size) |> Enum.sum()}
  end

  # The names that tame has in a release, beside these modules: those of src/ and our natives.
  def names(more \\ []) do
    erts = "erts-#{:erlang.system_info(:version)}"
    sources = Path.wildcard(Path.join(@root, "src/**/*.erl"))

    beams =
      for name <- more ++ Enum.map(sources, &Path.basename(&1, ".erl")), do: "ebin/#{name}.beam"

    natives = for name <- natives(), do: "priv/#{erts}/#{name}"
    Enum.sort(["ebin/tame.app"] ++ beams ++ natives)
  end

  def natives, do: ~w(tame_host tame_iovec.so tame_permits.so tame_ring_nif.so)

  # A test is skipped without this; said once.
  def skip(true, _sentence), do: nil

  def skip(false, sentence) do
    IO.puts("skip: package: " <> sentence)
    sentence
  end

  def no_git, do: skip(System.find_executable("git") != nil, "there is no git")

  # An example, without what was built there, as a project at `folder` whose files are changed: {name, from, to}.
  def example!(name, folder, changes) do
    source = Path.join([@root, "examples", name])
    File.mkdir_p!(folder)

    for file <- File.ls!(source), file not in ~w(_build _checkouts deps priv rebar.lock) do
      File.cp_r!(Path.join(source, file), Path.join(folder, file))
    end

    for {file, from, to} <- changes do
      path = Path.join(folder, file)
      text = File.read!(path)
      true = String.contains?(text, from)
      File.write!(path, String.replace(text, from, to))
    end

    folder
  end

  # A Mix project without code, at `folder`.
  def app!(folder, deps) do
    File.mkdir_p!(folder)

    File.write!(Path.join(folder, "mix.exs"), """
    defmodule App.MixProject do
      use Mix.Project
      def project, do: [app: :app, version: "1.0.0", deps: [#{deps}]]
      def application, do: []
    end
    """)

    folder
  end

  # A folder as a git repository.
  def git!(folder) do
    author = ~w(-c user.name=t -c user.email=t@t)

    for args <- [~w(init -q -b main), ~w(add -A), author ++ ~w(commit -q -m package)] do
      {_, 0} = System.cmd("git", args, cd: folder, stderr_to_stdout: true)
    end

    folder
  end

  # {output, status} of a command in `folder`, in an environment without ours.
  def run(folder, command, args, env \\ []) do
    ours =
      for {name, _} <- System.get_env(), name =~ ~r/^(MIX_|TAME_|MAKE|ERL_FLAGS)/, do: {name, nil}

    System.cmd(command, args, cd: folder, env: ours ++ env, stderr_to_stdout: true)
  end

  # A folder with links to all programs on PATH but those named: to be a PATH.
  def path_without!(folder, names) do
    File.mkdir_p!(folder)

    for dir <- String.split(System.get_env("PATH"), ":"),
        {:ok, all} <- [File.ls(dir)],
        name <- all do
      # The first one on PATH has the name.
      if name not in names, do: File.ln_s(Path.join(dir, name), Path.join(folder, name))
    end

    folder
  end

  # As in an image that is made from a release: the release at /app, the libraries that ldd names for its programs, and
  # what its start script calls.
  @commands ~w(sh cat cut dirname env grep head mkdir od readlink sed sleep uname basename)
  def root!(folder, release) do
    for dir <- ~w(proc dev tmp bin), do: File.mkdir_p!(Path.join(folder, dir))
    File.cp_r!(release, Path.join(folder, "app"))

    for name <- @commands,
        do: File.cp!(System.find_executable(name), Path.join([folder, "bin", name]))

    {libraries, 0} =
      System.cmd(
        "sh",
        ["-c", "find app bin -type f -exec ldd {} + 2>&1 | grep -o '[ \t]/[^ ]*' | sort -u"],
        cd: folder
      )

    for library <- String.split(libraries), File.regular?(library) do
      to = folder <> library
      File.mkdir_p!(Path.dirname(to))
      File.cp!(library, to)
    end

    folder
  end

  # {output, status} of a command in a root, with its own /proc; what it starts and mounts ends with it.
  def in_root(root, command) do
    enter = "mount --rbind /dev dev && mount -t proc proc proc && exec chroot . /bin/sh -c \"$1\""

    args = [
      "--mount",
      "--pid",
      "--fork",
      "sh",
      "-c",
      enter,
      "sh",
      "export PATH=/bin HOME=/; #{command}"
    ]

    System.cmd("unshare", args, cd: root, stderr_to_stdout: true)
  end

  # Whether in_root/2 is allowed here.
  def roots? do
    System.find_executable("unshare") != nil and
      match?(
        {_, 0},
        System.cmd("unshare", ~w(--mount --pid --fork mount -t tmpfs tmpfs /mnt),
          stderr_to_stdout: true
        )
      )
  end
end
