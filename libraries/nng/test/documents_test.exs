defmodule Tame.Nng.DocumentsTest do
  # What the README and the example say, done.
  use ExUnit.Case, async: true

  Code.require_file("../../readme_block.exs", __DIR__)

  test "the README's first lines give what stands there" do
    assert {value, value} = Tame.Packages.ReadmeBlock.run("README.md")
  end

  test "the example" do
    said = ExUnit.CaptureIO.capture_io(fn -> Code.eval_file("examples/requests.exs") end)
    assert said == "TO BE\nOR NOT\nTO BE\n"
  end
end
