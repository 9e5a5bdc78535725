defmodule Tame.Report do
  @moduledoc """
  The report: sections of text, charts and tables as one self-contained HTML page.

  A lab gives what it has to say as a `Tame.Report.Section`; this module knows no lab. The page begins with the
  findings of all sections, so that who reads no further knows the answers. It holds its style, its script
  and the data of its charts, so it opens from disk and needs no network.

      {:ok, assets} = Tame.Report.assets()
      section = Tame.Latency.Section.from_result(result)
      page = Tame.Report.render([section], Tame.SystemInfo.lines(result.system), assets: assets)
      :ok = Tame.Output.write("tame_report.html", page)

  Sections may come from anywhere, so everything in them is text and is escaped; only the assets
  are trusted. A table can be read without JavaScript, the charts cannot.
  """

  alias Tame.Report.{HTML, Section, SectionView, View}

  @typedoc "The page's style and script, as `assets/` builds them."
  @type assets :: %{css: String.t(), js: String.t()}

  @typedoc "What the report was measured on, in the order in which it is shown."
  @type system :: [{label :: atom() | String.t(), text :: String.t()}]

  @doc """
  Renders `sections` as one page. Pure.

  Options:

    * `:assets` - what `assets/0` returned (required)
    * `:title` - the page's title (default: `"Tame report"`)
    * `:lead` - one sentence under the title, such as when it was measured, and on what (default: none)
    * `:json` - the file beside the page that has its figures (default: none)
    * `:warnings` - what may spoil the figures of all labs, shown with the machine (default: none)
  """
  @spec render([Section.t()], system(), keyword()) :: iodata()
  def render(sections, system, opts) do
    opts =
      Keyword.validate!(opts, [:assets, title: "Tame report", lead: nil, json: nil, warnings: []])

    assets =
      opts[:assets] || raise ArgumentError, "render/3 needs :assets, see Tame.Report.assets/0"

    [
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      # The browser itself refuses what would leave the page.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
      "<meta name=\"color-scheme\" content=\"light dark\">\n",
      HTML.tag("title", opts[:title]),
      "\n<style>\n",
      raw(assets.css, "</style"),
      "</style>\n</head>\n<body>\n",
      View.contents(sections, system != []),
      "<div class=\"page\">\n",
      View.head(opts[:title], opts[:lead], opts[:json], opts[:warnings]),
      View.findings(sections),
      "<main>\n",
      Enum.map(sections, &SectionView.section/1),
      "</main>\n",
      View.machine(system, opts[:warnings]),
      View.foot(),
      "</div>\n",
      "<script>\n",
      raw(assets.js, "</script"),
      "</script>\n</body>\n</html>\n"
    ]
  end

  @doc """
  Reads the page's style and script from tame's `priv` folder.

  They are built, not stored; the error says how to build them.
  """
  @spec assets(Path.t()) :: {:ok, assets()} | {:error, String.t()}
  def assets(folder \\ assets_folder()) do
    with {:ok, css} <- read_asset(folder, "page.css"),
         {:ok, js} <- read_asset(folder, "page.js") do
      {:ok, %{css: css, js: js}}
    end
  end

  defp assets_folder do
    case :code.priv_dir(:tame_labs) do
      {:error, :bad_name} -> Path.join("priv", "report")
      priv -> Path.join(to_string(priv), "report")
    end
  end

  defp read_asset(folder, name) do
    path = Path.join(folder, name)

    case File.read(path) do
      {:ok, text} ->
        {:ok, text}

      {:error, reason} ->
        {:error,
         "cannot read the report's #{name} at #{path}: #{:file.format_error(reason)}; run: make #{tree()}assets"}
    end
  end

  # Where the Makefile lies that builds them, also for a project that has the labs as a dependency.
  defp tree do
    with {:ok, labs} <- :tame_labs_native.source_dir(),
         do: "-C #{Path.dirname(labs)} ",
         else: (:unknown -> "")
  end

  # Style and script stand in the page as they are; the one thing that would end them early must not be in them.
  defp raw(text, ending) do
    if text |> String.downcase() |> String.contains?(ending) do
      raise ArgumentError, "a page asset contains #{ending}, which would end its element"
    end

    text
  end
end
