defmodule Tame.Test.Schema do
  @moduledoc false
  # The JSON of a tool against its schema in docs/schema, by python3-jsonschema.

  import ExUnit.Assertions

  @folder Path.expand("../docs/schema")
  @script Path.expand("support/schema.py")

  def folder, do: @folder

  # Asserts that a file is what the schema of its tool says, and returns what it holds. Where there is no validator
  # the file is read only, which test/labs/schema_test.exs announces.
  def assert_schema(path) do
    assert {:ok, %{"tool" => tool} = json} = path |> File.read!() |> :tame_json.decode()

    if python = python() do
      args = [@script, Path.join(@folder, tool <> ".json"), Path.join(@folder, "system.json"), path]
      assert {"", 0} = System.cmd(python, args, stderr_to_stdout: true)
    end

    json
  end

  # One from a package manager of its own may come first on PATH and lack what Debian's has.
  def python do
    case :persistent_term.get(__MODULE__, :not_looked) do
      :not_looked ->
        python = find_python()
        :persistent_term.put(__MODULE__, python)
        python

      python ->
        python
    end
  end

  defp find_python do
    Enum.find(["python3", "/usr/bin/python3"], fn python ->
      System.find_executable(python) &&
        match?({_, 0}, System.cmd(python, ["-c", "import jsonschema"], stderr_to_stdout: true))
    end)
  end
end
