defmodule Tame.Options do
  @moduledoc """
  Reads the command lines of the `mix tame.*` tasks strictly: the error of a wrong one is one line that names the
  word, what was expected and the valid choices.

      iex> Tame.Options.parse(["--bytes", "16"], bytes: :non_neg_integer)
      {:ok, [bytes: 16]}

      iex> Tame.Options.parse(["--bites", "16"], bytes: :non_neg_integer)
      {:error, "unknown switch --bites, expected one of: --bytes"}
  """

  @typedoc "`:list` is words with commas between them, `:words` are split as a shell does; `:flag` takes no value."
  @type type :: :pos_integer | :non_neg_integer | :string | :list | :words | :flag

  @doc "Reads `argv` by `switches`, in which each switch has its type."
  @spec parse([String.t()], keyword(type())) :: {:ok, keyword()} | {:error, String.t()}
  def parse(argv, switches) do
    case parse_words(argv, switches) do
      {:ok, options, []} ->
        {:ok, options}

      {:ok, _, [word | _]} ->
        {:error, "unexpected word #{inspect(word)}, #{choices(strict(switches))}"}

      {:error, message} ->
        {:error, message}
    end
  end

  @doc """
  As `parse/2`, of a task that takes words beside its switches.

      iex> Tame.Options.parse_words(["crypto", "--all"], all: :flag)
      {:ok, [all: true], ["crypto"]}
  """
  @spec parse_words([String.t()], keyword(type())) ::
          {:ok, keyword(), [String.t()]} | {:error, String.t()}
  def parse_words(argv, switches) do
    strict = strict(switches)

    case OptionParser.parse(argv, strict: strict) do
      {pairs, words, []} ->
        with {:ok, options} <- read(pairs, switches), do: {:ok, options, words}

      {_, _, [{switch, value} | _]} ->
        {:error, refuse(switch, value, strict, argv)}
    end
  end

  defp strict(switches) do
    # A :boolean of OptionParser is --no-X as well, and takes true and false; a :count does not.
    for {name, type} <- switches, do: {name, if(type == :flag, do: :count, else: :string)}
  end

  defp read(pairs, switches) do
    Enum.reduce_while(pairs, {:ok, []}, fn {name, text}, {:ok, options} ->
      case value(switches[name], text) do
        {:ok, value} ->
          {:cont, {:ok, options ++ [{name, value}]}}

        {:error, expected} ->
          {:halt, {:error, "#{switch(name)} #{shown(text)}: expected #{expected}"}}
      end
    end)
  end

  # As a shell's unset variable gives it.
  defp shown(""), do: ~s("")
  defp shown(text), do: text

  defp value(:string, ""), do: {:error, "a value"}
  defp value(:string, text), do: {:ok, text}
  defp value(:flag, _times), do: {:ok, true}
  defp value(:pos_integer, text), do: integer(text, 1)
  defp value(:non_neg_integer, text), do: integer(text, 0)

  defp value(:words, text) do
    {:ok, OptionParser.split(text)}
  rescue
    error -> {:error, "words as a shell reads them: #{Exception.message(error)}"}
  end

  defp value(:list, text) do
    case String.split(text, ",", trim: true) do
      [] -> {:error, "at least one word, with commas between them"}
      words -> {:ok, words}
    end
  end

  defp integer(text, least) do
    case Integer.parse(String.replace(text, "_", "")) do
      {value, ""} when value >= least -> {:ok, value}
      _ -> {:error, "a whole number of #{least} or more"}
    end
  end

  # OptionParser does not say whether the switch or its value is wrong; whether we know it does.
  defp refuse(switch, value, strict, argv) do
    known? = Enum.any?(strict, fn {name, _} -> switch(name) == switch end)

    case {known?, value} do
      {false, _} -> "unknown switch #{switch}, #{choices(strict)}"
      {true, nil} -> "#{switch} needs a value" <> behind(switch, argv)
      {true, value} -> "#{switch} takes no value, got: #{value}"
    end
  end

  # A value that begins with -, such as an emulator's flag, is taken for the next switch.
  defp behind(switch, argv) do
    case Enum.drop_while(argv, &(&1 != switch)) do
      [_, "-" <> _ = next | _] -> ", got the switch #{next}; as a value it is #{switch}=#{next}"
      _ -> ""
    end
  end

  defp choices(strict) do
    "expected one of: " <> Enum.map_join(strict, ", ", fn {name, _} -> switch(name) end)
  end

  defp switch(name), do: "--" <> String.replace(Atom.to_string(name), "_", "-")
end
