defmodule Tame.SchemaTest do
  # docs/schema has a schema for each tool that writes JSON; each task's own test holds its real output against it.
  use ExUnit.Case, async: true

  alias Tame.Test.Schema

  if Schema.python() == nil, do: IO.puts("skip: schemas: there is no python3 with jsonschema")

  # Every task that takes --json.
  @tools (
           _ = Application.load(:tame_labs)
           {:ok, modules} = :application.get_key(:tame_labs, :modules)

           for module <- modules,
               String.starts_with?(inspect(module), "Mix.Tasks.Tame."),
               Mix.Task.moduledoc(module) =~ "`--json FILE`",
               do: Mix.Task.task_name(module)
         )

  defp schema(name) do
    {:ok, schema} = Schema.folder() |> Path.join(name) |> File.read!() |> :tame_json.decode()
    schema
  end

  # Every object with properties in a schema, with where it stands.
  defp objects(%{} = schema, at) do
    here = if is_map_key(schema, "properties"), do: [{at, schema}], else: []
    here ++ Enum.flat_map(schema, fn {key, value} -> objects(value, "#{at}/#{key}") end)
  end

  defp objects([_ | _] = list, at), do: Enum.flat_map(list, &objects(&1, at))
  defp objects(_, _at), do: []

  test "each tool has a schema, each schema a tool, and nothing else lies there" do
    assert length(@tools) > 5

    assert Enum.sort(File.ls!(Schema.folder())) ==
             Enum.sort(["README.md", "system.json" | Enum.map(@tools, &"#{&1}.json")])
  end

  test "the real output of each tool is held against its schema by the task's test" do
    for tool <- @tools do
      assert File.read!("labs/tasks/#{tool}_test.exs") =~ "assert_schema(",
             "#{tool} has no such test"
    end
  end

  for name <- ["system" | @tools] do
    test "#{name}: every key is described, every number has its unit, every object is closed" do
      schema = schema("#{unquote(name)}.json")
      assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"

      for {at, object} <- objects(schema, ""), {key, value} <- object["properties"] do
        types = List.wrap(value["type"])
        text = Map.get(value, "description", "")

        assert text =~ ~r/.\.$/, "#{at} #{key} has no description"

        if "number" in types or "integer" in types,
          do: assert(value["unit"], "#{at} #{key} has no unit")
      end

      # The block that others refer to is closed there.
      for {at, object} <- objects(schema, ""), unquote(name) != "system" or at != "" do
        assert object["additionalProperties"] == false or object["unevaluatedProperties"] == false,
               "#{at} takes any key"

        assert object["required"], "#{at} requires nothing"
      end
    end
  end

  @tag skip: Schema.python() == nil
  @tag :tmp_dir
  test "what is not as the schema says is refused", %{tmp_dir: folder} do
    path = Path.join(folder, "out.json")
    system = Tame.SystemInfo.collect("mix tame.collapse")

    row =
      %{Tame.Collapse.lost([], []) | stretches: 0}
      |> Map.merge(%{flags: [], status: "ok", reason: nil, cheap_wait_max_us: nil})

    write = fn rows, system -> File.write!(path, Tame.Collapse.json(rows, system)) end

    write.([row], system)
    Schema.assert_schema(path)

    # All at once: a start of Python is most of the time.
    wrong = [
      Map.delete(row, :status),
      Map.put(row, :more, 1),
      %{row | waiting_ms: "1"},
      %{row | status: "fine"}
    ]

    write.(wrong, Keyword.delete(system, :otp) ++ [less: 1])
    error = assert_raise ExUnit.AssertionError, fn -> Schema.assert_schema(path) end

    for line <- [
          "collapse/0: 'status' is a required property",
          "collapse/1: Additional properties are not allowed ('more' was unexpected)",
          "collapse/2/waiting_ms: '1' is not of type 'number'",
          "collapse/3/status: 'fine' is not one of",
          "system: 'otp' is a required property",
          "system: Unevaluated properties are not allowed ('less' was unexpected)"
        ],
        do: assert(Exception.message(error) =~ line)
  end
end
