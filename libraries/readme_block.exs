# The first block of Erlang in a package's README, done as a reader would: what it gives, and what the README says.
defmodule Tame.Packages.ReadmeBlock do
  def run(readme) do
    [_, block] = Regex.run(~r/```erlang\n1> (.*?)```/s, File.read!(readme))
    [code, said] = String.split(block, ~r/\.\n/, parts: 2)
    {:ok, tokens, _} = :erl_scan.string(String.to_charlist(code <> "."))
    {:ok, forms} = :erl_parse.parse_exprs(tokens)
    {:value, value, _} = :erl_eval.exprs(forms, :erl_eval.new_bindings())
    {"#{:io_lib.format(~c"~p", [value])}", String.trim(said)}
  end
end
