defmodule Tame.Test.ShellSession do
  @moduledoc false
  # The shell sessions of a page: what stands behind `N> ` is evaluated, what stands below it is what comes of it.

  @doc "The commands of all Erlang blocks of a page that begin with a prompt: `{line in the page, command, expected}`."
  def read(page) do
    for [block] <- Regex.scan(~r/^```erlang\n1?\d*> .*?^```$/ms, page),
        [_, number, text] <- Regex.scan(~r/^(\d+)> (.*?)(?=^\d+> |^```$)/ms, block) do
      # A command ends with a line that ends with a full stop.
      [command, expected] = Regex.run(~r/\A(.*?\.)\n(.*)\z/s, text, capture: :all_but_first)
      {String.to_integer(number), command, String.trim(expected)}
    end
  end

  @doc "What comes of each command, as text, one after the other with the same bindings. Runs in any VM."
  def run(commands) do
    {texts, _} =
      Enum.map_reduce(commands, :erl_eval.new_bindings(), fn command, bindings ->
        {:ok, tokens, _} = :erl_scan.string(String.to_charlist(command))
        {:ok, expressions} = :erl_parse.parse_exprs(tokens)
        evaluate(expressions, bindings)
      end)

    texts
  end

  defp evaluate(expressions, bindings) do
    {:value, value, bindings} = :erl_eval.exprs(expressions, bindings)
    {text("~tp", value), bindings}
  catch
    class, reason -> {"** exception #{class}: " <> text("~tp", reason), bindings}
  end

  defp text(format, value), do: format |> :io_lib.format([value]) |> IO.chardata_to_string()

  @doc "Whether a text is what a page says: `...` stands for anything, and white space does not count."
  def match?(text, expected) do
    pattern = expected |> squeezed() |> Regex.escape() |> String.replace("\\.\\.\\.", ".*")
    squeezed(text) =~ Regex.compile!("\\A#{pattern}\\z", "s")
  end

  defp squeezed(text), do: String.replace(text, ~r/\s/, "")
end
