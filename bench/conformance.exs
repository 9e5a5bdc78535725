# docs/conformance.md: every NIF library that this Debian release ships, in the VM and isolated.
#
#     cd labs && mix run ../bench/conformance.exs            all of it, about an hour; what is done is kept
#     cd labs && mix run ../bench/conformance.exs jiffy      packages whose name has one of these words, anew
#     cd labs && mix run ../bench/conformance.exs --write    the page from what was kept, calling nothing
#
# It downloads packages into tmp/audited at the top, and installs nothing. What was found of a library is written to
# tmp/conformance at once, so that a run that was ended goes on where it was.
for file <- ~w(audited/packages conformance/page), do: Code.require_file("#{file}.exs", __DIR__)

alias Audited.Packages
alias Conformance.Page
alias Tame.Audit
alias Tame.Audit.Conform

# By this the calls can be made again.
seed = 2026
calls = 300

top = Path.expand("..", __DIR__)
scratch = Path.join(top, "tmp/audited")
kept = Path.join(top, "tmp/conformance")
File.mkdir_p!(kept)
words = System.argv() -- ["--write"]
write_only? = "--write" in System.argv()
:ok = :tame_labs_native.build()
{:ok, samples} = Conform.Samples.read(Path.join(__DIR__, "conformance/samples.exs"))

packages = Packages.fetch(scratch)

# What is unpacked is found after what is installed, which is of the same release.
for path <- Path.wildcard("#{scratch}/root/*/usr/lib/erlang/lib/*/ebin"),
    do: Code.append_path(path)

# A module that is not of a package's own application is not its library's.
found =
  for package <- packages, Path.wildcard("#{package.folder}/**/*.so") != [] do
    {:ok, found} = Audit.Static.look([{:folder, package.folder}])
    {package, found}
  end

for {package, found} <- found,
    library <- found.libraries,
    library.nif_version != nil,
    file = Path.join(kept, library.module),
    not write_only?,
    words == [] or Enum.any?(words, &String.contains?(package.name, &1)),
    words != [] or not File.exists?(file) do
  IO.puts("#{package.name}: #{library.module}")
  load = Tame.OtherLoad.start()
  began = System.monotonic_time(:millisecond)
  options = [calls: calls, seed: seed, total_ms: 240_000, samples: samples]
  compared = Conform.library(library, options)
  with {:ok, compared} <- compared, do: compared |> Conform.Format.library() |> IO.write()
  with {:error, why} <- compared, do: IO.puts("  " <> why)

  system = Tame.SystemInfo.ended(Tame.SystemInfo.collect("mix run ../bench/conformance.exs"), load)

  File.write!(
    file,
    :erlang.term_to_binary(%{
      compared: compared,
      package: package.name,
      version: package.version,
      module: library.module,
      day: Date.utc_today(),
      took_ms: System.monotonic_time(:millisecond) - began,
      others_percent: system[:others_percent]
    })
  )
end

if words == [] do
  entries =
    for file <- kept |> File.ls!() |> Enum.sort(),
        do: kept |> Path.join(file) |> File.read!() |> :erlang.binary_to_term()

  unread =
    for {package, %{failures: failures}} <- found,
        why <- failures,
        do: {package.name, String.replace(why, package.folder <> "/", "")}

  imports = Page.imports(packages)
  system = Tame.SystemInfo.collect("mix run ../bench/conformance.exs")
  path = Path.join(top, "docs/conformance.md")

  :ok =
    Tame.Output.write(
      path,
      Page.replace(
        File.read!(path),
        Page.markdown(entries, unread, imports, packages, system, seed)
      )
    )

  IO.puts("\n#{path}: #{length(entries)} libraries")
end
