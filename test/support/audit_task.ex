defmodule Tame.Test.AuditTask do
  @moduledoc false
  # mix tame.audit as its tests run it, on libraries of their own.

  alias Mix.Tasks.Tame.Audit
  alias Tame.AuditNatives
  alias Tame.Test.MixTask

  # A folder of its own for the calling module, on the code path, with these libraries of natives/audit_nif.c.
  def folder!(libraries) do
    folder = Path.join(System.tmp_dir!(), "tame_audit_#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)

    ExUnit.Callbacks.on_exit(fn ->
      for path <- :code.get_path(),
          List.starts_with?(path, String.to_charlist(folder)),
          do: true = :code.del_path(path)

      File.rm_rf!(folder)
    end)

    for {module, defines} <- libraries, do: AuditNatives.build!(folder, module, defines)
    folder
  end

  # {standard output, standard error, exit status}
  def audit(argv), do: MixTask.run(Audit, argv)

  # What it writes as JSON, and its exit status.
  def json(folder, argv) do
    path = Path.join(folder, "out.json")
    {_, _, status} = audit(argv ++ ["--json", path])
    {:ok, json} = path |> File.read!() |> :tame_json.decode()
    {json, status}
  end

  # The one function that it called, as JSON has it.
  def target(folder, function, more) do
    {%{"targets" => [target]}, status} = json(folder, [function | more])
    {target, status}
  end

  # A file in the folder; its path.
  def script(folder, name, text) do
    path = Path.join(folder, name)
    File.write!(path, text)
    path
  end
end
