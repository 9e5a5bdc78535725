# The tables of docs/audited.md: what each library can do, and what its functions do to a scheduler.
#
#     mix run ../bench/audited.exs
alias Tame.Audit
alias Tame.Audit.{Policy, Library, Verdict}
alias Tame.Number

file = &Path.join([__DIR__, "audited", &1])

calls = [
  {"jiffy:decode/1", input: "json"},
  {"jiffy:encode/1", input: "term"},
  {"fxml_stream:parse_element/1", input_file: file.("xml.exs")},
  {"fxml:element_to_binary/1", input_file: file.("element.exs")},
  {"fast_yaml:decode/1", input_file: file.("yaml.exs")},
  {"asn1rt_nif:decode_ber_tlv/1", input_file: file.("ber.exs")},
  {"asn1rt_nif:encode_ber_tlv/1", input_file: file.("tlv.exs")},
  {"crypto:hash/2", input: "=sha256,binary"},
  {"crypto:exor/2", input: "binary"},
  {"crypto:crypto_one_time/5", input: "=aes_128_ctr,=<<1:128>>,=<<1:128>>,binary,=true"},
  {"tame_exor:exor_inline/2", input: "binary"},
  {"tame_exor:exor_yielding/2", input: "binary"},
  {"tame_exor:exor_dirty/2", input: "binary"}
]

:ok = :tame_labs_native.build()

statics =
  for name <- [:jiffy, :p1_xml, :p1_yaml, :crypto, :asn1], do: %{target: {:application, name}}

{us, {:ok, _}} = :timer.tc(fn -> Audit.run([%{target: :all}], []) end)
IO.puts("Everything on the code path: #{Tame.Duration.measured(us)}\n")

{:ok, %{libraries: libraries}} = Audit.run(statics, [])
IO.puts("| library | declared | can |\n| --- | --- | --- |")

for library <- libraries do
  kinds =
    for kind <- Library.kinds(),
        names = Library.of_kind(library, kind),
        names != [],
        do: "#{length(names)} #{kind}"

  IO.puts(
    "| `#{library.module}` | #{Enum.join(kinds, ", ")} | #{Enum.join(Library.can_texts(library), ", ")} |"
  )
end

IO.puts(
  "\n| function, input | longest slice | grows with | over 1 ms from | verdicts | took |\n| --- | --- | --- | --- | --- | --- |"
)

for call <- calls do
  {text, options} = call
  {:ok, %{check: check}} = Policy.check(text, options)
  {us, {:ok, result}} = :timer.tc(fn -> Audit.run([check], []) end)

  case result.targets do
    [target] ->
      last = Enum.max_by(target.points, & &1.longest_slice_us, fn -> nil end)

      slice =
        last &&
          "#{Tame.Duration.measured(last.longest_slice_us)} at #{Number.bytes(last.bytes) |> String.replace(~r/ \(.*/, "")}"

      growth =
        target.growth &&
          "bytes^#{Float.round(target.growth.exponent, 2)} (R² #{Float.round(target.growth.fit, 2)})"

      crosses =
        if bytes = target.crosses_budget_at_bytes, do: "#{Number.grouped(bytes)} B", else: "–"

      verdicts = Enum.map_join(target.verdicts, "; ", &Verdict.text/1)

      IO.puts(
        "| `#{text}`, #{elem(check.input, 0)} | #{slice} | #{growth} | #{crosses} | #{verdicts} | #{Tame.Duration.measured(us)} |"
      )

    [] ->
      IO.puts("| `#{text}` | #{Enum.join(result.failures, "; ")} |")
  end
end
