# The index of docs/audited.md: every NIF library that this Debian release ships, and what its functions do to a
# scheduler; and the same as a page, report/audited.html.
#
#     cd labs && mix run ../bench/audited.exs            all of it, about half an hour
#     cd labs && mix run ../bench/audited.exs jiffy      packages whose name has one of these words; shown, not written
#
# It downloads packages into tmp/audited at the top, and installs nothing. Functions are called there too, so that
# what one writes into a file of its own choice is thrown away with it.
for file <- ~w(packages candidates index), do: Code.require_file("audited/#{file}.exs", __DIR__)

alias Audited.{Candidates, Index, Packages}
alias Tame.Audit
alias Tame.Audit.Input

# For all sizes of a function, and for one call.
total_ms = 3000
limit_ms = 3000

# What no generator makes.
file = &Input.file(Path.join([__DIR__, "audited", &1]))
{:ok, hash} = Input.parse("=sha256,binary")
{:ok, cipher} = Input.parse("=aes_128_ctr,=<<1:128>>,=<<1:128>>,binary,=true")

written = %{
  {:jiffy, :decode, 1} => Input.parse("json"),
  {:jiffy, :encode, 1} => Input.parse("term"),
  {:fxml_stream, :parse_element, 1} => file.("xml.exs"),
  {:fxml, :element_to_binary, 1} => file.("element.exs"),
  {:fast_yaml, :decode, 1} => file.("yaml.exs"),
  {:asn1rt_nif, :decode_ber_tlv, 1} => file.("ber.exs"),
  {:asn1rt_nif, :encode_ber_tlv, 1} => file.("tlv.exs"),
  {:crypto, :hash, 2} => {:ok, hash},
  {:crypto, :crypto_one_time, 5} => {:ok, cipher}
}

top = Path.expand("..", __DIR__)
scratch = Path.join(top, "tmp/audited")
words = System.argv()
began = System.monotonic_time(:microsecond)
load = Tame.OtherLoad.start()
:ok = :tame_labs_native.build()

packages =
  for package <- Packages.fetch(scratch),
      words == [] or Enum.any?(words, &String.contains?(package.name, &1)),
      do: package

# What is unpacked is found after what is installed, which is of the same release.
for path <- Path.wildcard("#{scratch}/root/*/usr/lib/erlang/lib/*/ebin"),
    do: Code.append_path(path)

work = Path.join(scratch, "work")
File.mkdir_p!(work)
File.cd!(work)

{libraries, unread} =
  Enum.reduce(packages, {[], []}, fn package, {libraries, unread} ->
    case Path.wildcard("#{package.folder}/**/*.so") do
      [] ->
        {libraries, unread}

      _ ->
        {:ok, found} = Audit.run([%{target: {:folder, package.folder}}], [])
        named = for library <- found.libraries, library.nif_version, do: {library, package.name}

        why =
          for why <- found.failures,
              do: {package.name, String.replace(why, package.folder <> "/", "")}

        {libraries ++ named, unread ++ why}
    end
  end)

call = fn function, kinds, package, input ->
  text = Tame.FunctionName.text(function)
  check = %{target: {:function, function}, input: input, total_ms: total_ms, limit_ms: limit_ms}

  case Audit.run([check], []) do
    {:ok, %{targets: [target]}} -> Index.row(text, kinds, package, target)
    {:ok, %{failures: [why | _]}} -> Index.not_called(text, kinds, package, why)
  end
end

rows =
  for {library, package} <- libraries,
      beam = :code.which(String.to_atom(library.module)),
      is_list(beam),
      {function, kinds} <- Candidates.functions(library, to_string(beam)) do
    input = written[function] || Candidates.input(function)

    row =
      case input do
        {:ok, input} -> call.(function, kinds, package, input)
        {:error, why} -> Index.not_called(Tame.FunctionName.text(function), kinds, package, why)
      end

    IO.puts("#{row.function}  #{row.why || Enum.join(row.verdicts, ", ")}")
    row
  end

took = Index.took(System.monotonic_time(:microsecond) - began)

system = "mix run ../bench/audited.exs" |> Tame.SystemInfo.collect() |> Tame.SystemInfo.ended(load)

about =
  "#{system[:os]}, #{Calendar.strftime(DateTime.utc_now(), "%Y-%m-%d")}, OTP #{system[:otp]} (erts #{system[:erts]}), #{system[:cpu]}, " <>
    "#{system[:cores]} cores, others took #{system[:others_percent]} % of them. #{length(packages)} packages are built against Erlang; " <>
    "#{length(libraries)} NIF libraries are in #{libraries |> Enum.map(&elem(&1, 1)) |> Enum.uniq() |> length()} of them. Budget 1 ms, " <>
    "#{Tame.Duration.text(1000 * total_ms)} for all sizes of a function. It took #{took}."

if words == [] do
  path = Path.join(top, "docs/audited.md")
  index = Index.markdown(rows, libraries, unread, about)
  [before, rest] = String.split(File.read!(path), "<!-- index -->\n", parts: 2)
  [_, rest] = String.split(rest, "<!-- end of index -->\n", parts: 2)
  text = [before, "<!-- index -->\n", index, "<!-- end of index -->\n", rest]
  :ok = Tame.Output.write(path, text)

  {:ok, assets} = Tame.Report.assets()
  section = Index.section(rows, libraries, unread, about)

  page =
    Tame.Report.render([section], Tame.SystemInfo.lines(system),
      assets: assets,
      title: "NIFs that Debian ships, audited"
    )

  File.mkdir_p!(Path.join(top, "report"))
  :ok = Tame.Output.write(Path.join(top, "report/audited.html"), page)
  IO.puts("\n#{path}, report/audited.html: #{length(rows)} functions")
else
  IO.puts([?\n, Index.markdown(rows, libraries, unread, about)])
end
