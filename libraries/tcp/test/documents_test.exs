defmodule Tame.Tcp.DocumentsTest do
  # What the README and the example say, done.
  use ExUnit.Case, async: true

  Code.require_file("../../readme_block.exs", __DIR__)

  test "the README's first lines give what stands there" do
    assert {value, value} = Tame.Packages.ReadmeBlock.run("README.md")
  end

  test "the README names each function" do
    [_, section] = String.split(File.read!("README.md"), "\n## What is in it\n")

    for {name, _} <- :tame_tcp.module_info(:exports), name not in [:module_info, :format_error] do
      assert section =~ ~r/`#{name}[`(]/, "#{name}"
    end
  end

  test "the example" do
    said = ExUnit.CaptureIO.capture_io(fn -> Code.eval_file("examples/echo.exs") end)
    assert said == "to be or not\n"
  end
end
