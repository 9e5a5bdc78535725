defmodule Tame.JSON do
  @moduledoc """
  Writes a term as JSON, keys in the order given.

  Written here because neither OTP 25 nor Elixir 1.14 has a JSON writer, and tame has no dependencies at run time. It
  only writes. An object is a map (its keys sorted) or a keyword list (its keys in their order).

      iex> IO.iodata_to_binary(Tame.JSON.encode(id: "a", us: 1.5, reason: nil, list: [1, true]))
      ~s({"id":"a","us":1.5,"reason":null,"list":[1,true]})
  """

  @type value ::
          nil
          | boolean()
          | number()
          | atom()
          | String.t()
          | [value()]
          | keyword(value())
          | %{optional(String.t() | atom()) => value()}

  @doc """
  Encodes `value` as iodata. Atoms other than `nil`, `true` and `false` become strings.

  Raises `ArgumentError` on anything that JSON has no word for (tuples, pids, bytes that are no UTF-8).
  """
  @spec encode(value()) :: iodata()
  def encode(nil), do: "null"
  def encode(true), do: "true"
  def encode(false), do: "false"
  def encode(atom) when is_atom(atom), do: encode(Atom.to_string(atom))
  def encode(int) when is_integer(int), do: Integer.to_string(int)
  # Elixir writes the shortest decimal that reads back as the same float; JSON reads it as it is.
  def encode(float) when is_float(float), do: Float.to_string(float)

  def encode(text) when is_binary(text) do
    if not String.valid?(text), do: raise(ArgumentError, "not UTF-8: #{inspect(text)}")
    [?", escape(text, text, 0, 0), ?"]
  end

  def encode([{key, _} | _] = pairs) when is_atom(key) or is_binary(key), do: object(pairs)
  def encode(list) when is_list(list), do: [?[, Enum.map_intersperse(list, ?,, &encode/1), ?]]

  def encode(%{} = map) when not is_struct(map) do
    map |> Enum.sort_by(fn {key, _} -> to_string(key) end) |> object()
  end

  def encode(other), do: raise(ArgumentError, "JSON has no word for #{inspect(other)}")

  defp object(pairs) do
    [
      ?{,
      Enum.map_intersperse(pairs, ?,, fn {k, v} -> [encode(to_string(k)), ?:, encode(v)] end),
      ?}
    ]
  end

  # Copies runs of plain bytes as parts of the original and replaces what must be escaped.
  # "<" is escaped so that the text can stand inside a <script> element as it is.
  defp escape(<<byte, rest::binary>>, text, from, len)
       when byte >= 0x20 and byte != ?" and byte != ?\\ and byte != ?< do
    escape(rest, text, from, len + 1)
  end

  defp escape(<<byte, rest::binary>>, text, from, len) do
    [binary_part(text, from, len), escaped(byte) | escape(rest, text, from + len + 1, 0)]
  end

  defp escape(<<>>, text, from, len), do: [binary_part(text, from, len)]

  defp escaped(?"), do: "\\\""
  defp escaped(?\\), do: "\\\\"
  defp escaped(?\n), do: "\\n"
  defp escaped(?\t), do: "\\t"
  defp escaped(?\r), do: "\\r"
  defp escaped(byte), do: ["\\u00" | String.downcase(Base.encode16(<<byte>>))]
end
