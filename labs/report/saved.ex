defmodule Tame.Report.Saved do
  @moduledoc """
  A report's figures as JSON: the file beside the page. The page is made from what is read from it, nothing else.
  """

  alias Tame.{Result, SystemInfo}
  alias Tame.Report.Shape

  @typedoc """
  `:labs` has what each lab saved, by its name. Its `:warnings` are those of the lab; `:warnings` of the report are those
  that hold for the machine.
  """
  @type t :: %{
          command: String.t(),
          at: String.t(),
          took_s: non_neg_integer(),
          system: SystemInfo.t(),
          warnings: [Tame.Report.Section.warning()],
          labs: %{String.t() => map()}
        }

  @tool "tame.report"
  @format 1

  @warnings [%{id: :text, text: :text}]

  @doc "The results of labs, `{module, result}` in the order in which they ran, as a report."
  @spec new([{module(), map()}], String.t(), DateTime.t(), DateTime.t()) :: t()
  def new([{_, %{system: system}} | _] = results, command, from, to) do
    machine = Map.new(results, fn {lab, result} -> {lab, SystemInfo.warnings(result.system)} end)

    %{
      command: command,
      at: from |> DateTime.truncate(:second) |> DateTime.to_iso8601(),
      took_s: DateTime.diff(to, from),
      system: Keyword.put(system, :command, command),
      warnings: machine_warnings(machine),
      labs:
        Map.new(results, fn {lab, result} ->
          own = Map.get(result, :warnings, []) -- machine[lab]

          {lab.name(),
           Map.put(lab.to_save(result), :warnings, Enum.map(own, &Map.take(&1, [:id, :text])))}
        end)
    }
  end

  # Each once, with the labs before which it held.
  defp machine_warnings(machine) do
    by_text =
      for {lab, warnings} <- machine, warning <- warnings, reduce: %{} do
        seen -> Map.update(seen, Map.take(warning, [:id, :text]), [lab.name()], &[lab.name() | &1])
      end

    for {warning, labs} <- Enum.sort_by(by_text, fn {warning, _} -> warning.text end) do
      if length(labs) == map_size(machine),
        do: warning,
        else: %{
          warning
          | text: "#{warning.text} (Before: #{labs |> Enum.sort() |> Enum.join(", ")}.)"
        }
    end
  end

  @doc "The report as JSON: `tool`, `format`, `system`, `warnings`, `command`, `at`, `took_s`, `labs`."
  @spec encode(t()) :: iodata()
  def encode(saved) do
    saved
    |> Map.merge(%{tool: @tool, format: @format})
    |> Result.json(command: saved.command, at: saved.at, took_s: saved.took_s, labs: saved.labs)
  end

  @doc """
  Reads a report's file, whose labs may be those of `labs`, modules, and others, which are left out. The error is one line
  that names the file, and where it is no report or not one of this version, the place and what was expected there.
  """
  @spec read(Path.t(), [module()]) :: {:ok, t()} | {:error, String.t()}
  def read(path, labs) do
    with {:ok, text} <- File.read(path), {:ok, saved} <- decode(text, labs) do
      {:ok, saved}
    else
      {:error, why} when is_binary(why) -> {:error, "#{path}: #{why}"}
      {:error, reason} -> {:error, "cannot read #{path}: #{:file.format_error(reason)}"}
    end
  end

  @doc "Reads a report's JSON."
  @spec decode(binary(), [module()]) :: {:ok, t()} | {:error, String.t()}
  def decode(text, labs) do
    with {:ok, report} <- json(text), do: from_json(report, labs)
  end

  @doc "The report that this is, as `:tame_json` reads it."
  @spec from_json(:tame_json.value(), [module()]) :: {:ok, t()} | {:error, String.t()}
  def from_json(report, labs) do
    with :ok <- Shape.check(report, %{tool: {:is, @tool}}),
         :ok <- Shape.check(report, %{format: {:is, @format}}),
         :ok <- Shape.check(report, shape(labs)),
         {:ok, labs} <- known(report["labs"], labs) do
      load_atoms()

      {:ok,
       %{
         command: report["command"],
         at: report["at"],
         took_s: report["took_s"],
         system: SystemInfo.from_map(value(report["system"])),
         warnings: value(report["warnings"]),
         labs: Map.new(labs, fn {name, lab} -> {name, value(lab)} end)
       }}
    end
  end

  defp json(text) do
    with {:error, at} <- :tame_json.decode(text),
         do:
           {:error,
            "expected the JSON that mix tame.report writes beside its page, which it is not from byte #{at} on"}
  end

  # The labs that it has, and each as the lab says.
  defp shape(labs) do
    %{
      command: :text,
      at: :text,
      took_s: :count,
      system: {:each, {:maybe, :scalar}},
      warnings: @warnings,
      labs: fn saved ->
        for lab <- labs, is_map_key(saved, lab.name()), into: %{} do
          {String.to_atom(lab.name()), Map.put(lab.shape(), :warnings, @warnings)}
        end
      end
    }
  end

  defp known(saved, labs) do
    names = Enum.map(labs, & &1.name())

    case Map.take(saved, names) do
      none when none == %{} ->
        {:error, "labs: expected some of #{Enum.join(names, ", ")}, which are missing"}

      known ->
        {:ok, known}
    end
  end

  # Keys are atoms that our modules have, once they are loaded; any other key stays text, and nobody looks at it.
  defp load_atoms do
    _ = Application.load(:tame_labs)
    {:ok, modules} = :application.get_key(:tame_labs, :modules)
    Enum.each(modules, &Code.ensure_loaded/1)
  end

  defp value(%{} = map), do: Map.new(map, fn {key, value} -> {key(key), value(value)} end)
  defp value(list) when is_list(list), do: Enum.map(list, &value/1)
  defp value(:null), do: nil
  defp value(value), do: value

  defp key(text) do
    String.to_existing_atom(text)
  rescue
    ArgumentError -> text
  end
end
