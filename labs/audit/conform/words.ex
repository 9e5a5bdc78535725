defmodule Tame.Audit.Conform.Words do
  @moduledoc false
  # Atoms and texts that a module and its library have in their files: options and names that no generator guesses.

  # More would make each of them rare.
  @most 300

  @doc "Of a module's beam file and its library."
  @spec of(Path.t(), Path.t()) :: [atom() | String.t()]
  def of(beam, library) do
    Enum.uniq(atoms(beam) ++ texts(library))
  end

  defp atoms(beam) do
    case :beam_lib.chunks(String.to_charlist(beam), [:atoms]) do
      {:ok, {_, [atoms: atoms]}} ->
        for {_, atom} <- atoms, plain?(Atom.to_string(atom)), do: atom

      _ ->
        []
    end
  end

  # Those that look like a word, as atoms, for most of them are.
  defp texts(library) do
    with {:ok, bytes} <- File.read(library) do
      words = Regex.scan(~r/\0([a-z][a-z0-9_]{1,23})(?=\0)/, bytes, capture: :all_but_first)

      for [word] <- words |> Enum.uniq() |> Enum.take(@most), plain?(word), do: String.to_atom(word)
    else
      _ -> []
    end
  end

  # A name of the API or of C's runtime is no word of the library's.
  defp plain?(word) do
    byte_size(word) <= 40 and not (word =~ ~r/^(enif_|_|libc|libm|gmon|nif_init|elixir|Elixir)/) and
      String.valid?(word)
  end
end
