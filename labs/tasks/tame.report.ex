defmodule Mix.Tasks.Tame.Report do
  use Tame.Task

  # No folder, which could be one of the project's own.
  @default_output "tame_report.html"

  # In the order of their sections, in which they also run.
  @labs [
    Tame.Latency.Report,
    Tame.Reductions.Report,
    Tame.Contention.Report,
    Tame.Load.Report,
    Tame.Load.BesideReport,
    Tame.NativeIO.Report,
    Tame.Isolation.Report,
    Tame.Audit.Report,
    Tame.Digest.Report
  ]

  @shortdoc "Runs the labs and writes one report page with pictures"

  @moduledoc """
  Runs the labs and writes one report page with pictures.

      $ mix tame.report --open
      $ mix tame.report --only latency,reductions --output laptop.html
      $ mix tame.report --compare before.json
      $ mix tame.report --from after.json --compare before.json

  Prints the tables of each lab, as `mix tame.latency`, `mix tame.reductions` and `mix tame.contention` do, and writes
  a page that opens from disk, without a network: what was found in a few sentences, then the labs. Its figures are
  written beside it as JSON, under the same name.

  The latency lab sends 64 KiB, the reductions lab takes two inputs of 256 MiB, the contention lab runs only its corner
  cells (`--quick`), the load lab runs four placements (`--quick`) where there is a cowboy, and the audit lists every NIF on the code path and calls three of
  tame's own. The digest lab is
  part of it where the project has `tame_sha3`, the library that it measures, and the lab http where there is a cowboy, h2load and
  `tame_http` (in the project, built in `libraries/http` of tame's tree, or in the folder that `TAME_HTTP` names).

  ## Command line options

    * `--output FILE` - the page (default: #{@default_output}; `-`: standard output); its figures are beside it, as FILE with
      `.json`, where it is a file
    * `--only LAB,LAB` - these labs only (default: all that can be measured here, see below)
    * `--compare FILE` - the figures of another report, such as one from before an upgrade: the page begins with both
      runs side by side and their ratios
    * `--from FILE` - makes the page from the figures of a report, and measures nothing
    * `--open` - opens the page in the browser
    * `--bytes N` - the payload of the latency lab, in bytes (default: 65536)
    * `--iterations N` - its calls of each method (default: 100000)
    * `--job-bytes N` - each of the two inputs of the reductions lab, in bytes (default: 268435456)

  Labs: #{Enum.map_join(@labs, ", ", &"`#{&1.name()}`")}.

  ## Exit status

  `0` when every cell, variant and method that this machine can run ended well, `1` when one failed midway
  (the page is written and says so), the command line is wrong or a file cannot be read or written.
  """

  alias Tame.{Options, Output, Progress, Reductions, Report}
  alias Tame.Report.{Browser, Page, Saved}

  @switches [
    output: :string,
    only: :list,
    compare: :string,
    from: :string,
    open: :flag,
    bytes: :non_neg_integer,
    iterations: :pos_integer,
    job_bytes: :pos_integer
  ]

  # What says how to measure.
  @measuring ~w(bytes iterations job_bytes)a

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    # All that can be refused is refused before the labs run.
    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, labs} <- labs(options[:only], options[:from]),
         {:ok, page, json} <- files(options[:output] || @default_output),
         :ok <- Output.apart([page, json]),
         {:ok, assets} <- Report.assets(),
         {:ok, old} <- old(options[:compare], [page, json]),
         {:ok, browser} <- browser(options[:open], page, json),
         {:ok, report} <- report(options, labs, Enum.join(["mix tame.report" | argv], " ")),
         :ok <- Output.check(page),
         :ok <- Output.check(json),
         {text, ok?} = report.(),
         {:ok, saved} <- Saved.decode(text, @labs),
         :ok <- Output.write(json, text),
         :ok <-
           Output.write(page, Page.render(saved, labs, old, json && Path.basename(json), assets)) do
      Mix.shell().info("\nThe report is in #{page}#{json && ", its figures in #{json}"}")
      Browser.open(browser, page)
      Tame.Task.outcome(ok?)
    end
  end

  defp labs(nil, nil), do: {:ok, Enum.filter(@labs, &here?/1)}
  defp labs(nil, _from), do: {:ok, @labs}

  defp labs(names, _from) do
    known = Enum.map(@labs, & &1.name())

    case names -- known do
      [] ->
        {:ok, Enum.filter(@labs, &(&1.name() in names))}

      [name | _] ->
        {:error, "unknown lab #{inspect(name)}, expected some of: #{Enum.join(known, ", ")}"}
    end
  end

  defp here?(lab) do
    {:module, ^lab} = Code.ensure_loaded(lab)
    not function_exported?(lab, :here?, 0) or lab.here?()
  end

  # Beside standard output or a device there is no place for the figures.
  defp files(page) do
    json = Path.rootname(page) <> ".json"

    cond do
      json == page ->
        {:error,
         "--output #{page}: expected a page such as #{Path.rootname(page)}.html; its figures go there"}

      Output.file?(page) ->
        {:ok, page, json}

      true ->
        {:ok, page, nil}
    end
  end

  defp old(nil, _outputs), do: {:ok, nil}

  defp old(path, outputs) do
    if Enum.any?(outputs, &(&1 && Output.replaces?(&1, path))),
      do: {:error, "--compare #{path}: would be replaced, expected another --output"},
      else: Saved.read(path, @labs)
  end

  defp browser(true, page, nil),
    do: {:error, "--open and --output #{page}: expected a file, which a browser can open"}

  defp browser(true, _page, _json), do: Browser.find()
  defp browser(_no, _page, _json), do: {:ok, nil}

  # What makes the report's JSON: the labs, or a file.
  defp report(options, labs, command) do
    case options[:from] do
      nil -> measured(options, labs, command)
      path -> from(path, labs, Keyword.take(options, @measuring))
    end
  end

  defp from(path, labs, []) do
    with {:ok, saved} <- Saved.read(path, @labs),
         :ok <- some_of(labs, saved, path),
         {:ok, text} <- File.read(path),
         do: {:ok, fn -> {text, true} end}
  end

  defp from(_path, _labs, [{option, _} | _]) do
    switch = option |> Atom.to_string() |> String.replace("_", "-")

    {:error,
     "--from and --#{switch}: expected one of them, because a saved report is not measured again"}
  end

  defp some_of(labs, saved, path) do
    if Enum.any?(labs, &is_map_key(saved.labs, &1.name())),
      do: :ok,
      else:
        {:error, "--only: #{path} has #{Enum.join(Map.keys(saved.labs), ", ")} and none of those"}
  end

  defp measured(options, labs, command) do
    how = %{
      bytes: options[:bytes] || 65_536,
      iterations: options[:iterations] || 100_000,
      job_bytes: options[:job_bytes] || Reductions.default_bytes(),
      run: [command: command, progress: Progress.printer()]
    }

    prepared =
      Enum.reduce_while(labs, {:ok, []}, fn lab, {:ok, ready} ->
        case lab.prepare(how) do
          {:ok, measure} -> {:cont, {:ok, ready ++ [{lab, measure}]}}
          error -> {:halt, error}
        end
      end)

    with {:ok, ready} <- prepared, do: {:ok, fn -> measure(ready, command) end}
  end

  defp measure(ready, command) do
    from = DateTime.utc_now()

    results =
      for {lab, measure} <- ready do
        Progress.part("measuring #{lab.name()}")
        {lab, shown(lab, measure.())}
      end

    saved = Saved.new(results, command, from, DateTime.utc_now())
    text = saved |> Saved.encode() |> IO.iodata_to_binary()
    {text, Enum.all?(results, fn {lab, result} -> lab.ok?(result) end)}
  end

  defp shown(lab, result) do
    Progress.clear()
    IO.write([lab.text(result), ?\n])
    result
  end
end
