defmodule Conformance.Page do
  # What bench/conformance.exs found, as Markdown.

  alias Tame.Audit.Conform.{Format, Reason}

  @mark "<!-- tables -->\n"
  @end_mark "<!-- end of tables -->\n"

  @doc "The page with other tables."
  def replace(page, tables) do
    [before, rest] = String.split(page, @mark, parts: 2)
    [_, rest] = String.split(rest, @end_mark, parts: 2)
    [before, @mark, tables, @end_mark, rest]
  end

  @doc "What each library of the packages imports that is neither of the API nor of another library it is linked with."
  def imports(packages) do
    for package <- packages,
        file <- Path.wildcard("#{package.folder}/**/*.so"),
        symbols(file, "--defined-only") |> Enum.any?(&(&1 == "nif_init")),
        name <- symbols(file, "--undefined-only"),
        emulator?(name),
        do: {package.name, Path.basename(file), name}
  end

  defp symbols(file, which) do
    {text, 0} = System.cmd("nm", ["-D", which, file], stderr_to_stdout: true)

    for line <- String.split(text, "\n", trim: true),
        do: line |> String.split() |> List.last() |> String.replace(~r/@.*/, "")
  end

  # What only the emulator's program exports: its own prefixes.
  defp emulator?(name), do: name =~ ~r/^(erl_|erts_|driver_|sys_|ethr_|ei_)/

  @doc "The part of the page that the command writes."
  def markdown(entries, unread, imports, packages, system, seed) do
    compared = for %{compared: {:ok, library}} = entry <- entries, do: {entry, library}
    refused = for %{compared: {:error, why}} = entry <- entries, do: {entry, why}
    differences = for {_, library} <- compared, found <- library.differences, do: {library, found}

    total = fn key ->
      compared |> Enum.map(fn {_, library} -> Format.sum(library)[key] end) |> Enum.sum()
    end

    [
      "#{system[:os]}, #{Date.utc_today()}, OTP #{system[:otp]} (erts #{system[:erts]}), #{system[:cpu]}, #{system[:cores]} cores. ",
      "#{length(packages)} packages are built against Erlang; #{length(entries)} modules bind a NIF library, ",
      "#{length(compared)} of them were compared, with #{total.(:calls)} calls: #{total.(:equal)} equal, #{total.(:contained)} crashes ",
      "contained, #{total.(:varies)} vary in the VM itself, #{total.(:differs)} differ. Seed #{seed}.\n",
      "\n### Libraries\n\n",
      line(
        ["library", "package", "version" | Enum.map(Format.columns(), &elem(&1, 0))] ++
          ["16 callers", "owners that die", "host killed"]
      ),
      line(List.duplicate("---", 13)),
      for {entry, library} <- compared do
        sum = Format.sum(library)

        line(
          ["`#{library.module}`", entry.package, entry.version] ++
            for({_, key} <- Format.columns(), do: "#{sum[key]}") ++
            for(row <- scenarios(library), do: Format.status(row.status))
        )
      end,
      "\n### What differs, and why\n\n",
      if(differences == [],
        do: "Nothing.\n",
        else: [
          line(["function", "kind", "smallest calls found", "in the VM", "isolated", "why"]),
          line(List.duplicate("---", 6)),
          for {_, found} <- differences do
            line([
              "`#{found.function}`",
              "#{found.kind}",
              "`#{found.input}`",
              "`#{found.in_vm}`",
              "`#{found.isolated}`",
              Reason.sentence(found)
            ])
          end
        ]
      ),
      "\n### Scenarios\n\n",
      line(["library", "scenario", "outcome"]),
      line(List.duplicate("---", 3)),
      for {_, library} <- compared, row <- library.scenarios do
        line([
          "`#{library.module}`",
          Format.scenario_text(row.scenario),
          "#{Format.status(row.status)}: #{row.what}"
        ])
      end,
      "\n### Functions\n\n",
      line(["function" | Enum.map(Format.columns(), &elem(&1, 0))]),
      line(List.duplicate("---", 8)),
      for {_, library} <- compared, row <- library.functions do
        line(["`#{row.function}`" | for({_, key} <- Format.columns(), do: "#{row[key]}")])
      end,
      notes(compared),
      "\n### Not compared, and why\n\n",
      for({entry, why} <- refused, do: "- #{entry.package}: #{why}\n"),
      for({package, why} <- unread, do: "- #{package}: #{why}\n"),
      "\n### Symbols of the emulator beside `enif_*`\n\n",
      if(imports == [],
        do: "None.\n",
        else: for({package, file, name} <- imports, do: "- `#{name}`: #{file} of #{package}\n")
      )
    ]
  end

  defp scenarios(%{scenarios: []}), do: List.duplicate(%{status: :not_run}, 3)
  defp scenarios(%{scenarios: rows}), do: rows

  defp notes(compared) do
    case for {_, library} <- compared, note <- library.notes, do: "- `#{library.module}`: #{note}\n" do
      [] -> []
      lines -> ["\n### Notes\n\n" | lines]
    end
  end

  defp line(cells),
    do: [
      "| ",
      Enum.map_join(cells, " | ", &(&1 |> to_string() |> String.replace("|", "\\|"))),
      " |\n"
    ]
end
