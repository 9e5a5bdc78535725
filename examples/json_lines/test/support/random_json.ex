defmodule RandomJson do
  @moduledoc "JSON text drawn from a seed, and cuts of it."

  @doc "A line of JSON, without its end; `size` is how deep it goes at most."
  def line(seed, size) do
    seed(seed)
    IO.iodata_to_binary(value(size))
  end

  @doc "The bytes as a list of binaries, cut anywhere, also into empty ones."
  def cut(bytes, seed) do
    seed(seed)
    cut(bytes)
  end

  @doc "The bytes with one of them changed, taken out or put in; no newline."
  def broken(bytes, seed) do
    seed(seed)
    at = below(byte_size(bytes) + 1)
    <<before::binary-size(at), rest::binary>> = bytes

    byte =
      one_of([<<below(256)>>, one_of(["\"", "\\", "{", "}", "[", "]", ",", ":", "e", "-", "0"])])

    byte = if byte == "\n", do: "\r", else: byte

    case {below(3), rest} do
      {0, <<_, rest::binary>>} -> before <> byte <> rest
      {1, <<_, rest::binary>>} -> before <> rest
      _ -> before <> byte <> rest
    end
  end

  defp seed(seed), do: :rand.seed(:exsss, {seed, 14, 92})
  defp below(n), do: :rand.uniform(n) - 1
  defp one_of(list), do: Enum.at(list, below(length(list)))

  defp cut(""), do: []

  defp cut(bytes) do
    size = min(byte_size(bytes), one_of([0, 1, 2, 3, 7, 20, 100]))
    <<piece::binary-size(size), rest::binary>> = bytes
    [piece | cut(rest)]
  end

  defp value(0), do: one_of([&number/0, &number/0, &string/0, &name/0]).()

  defp value(size) do
    inner = fn -> value(below(size)) end

    case below(5) do
      0 -> ["[", space(), several(inner), "]"]
      1 -> ["{", space(), several(fn -> [string(), space(), ":", space(), inner.()] end), "}"]
      _ -> value(0)
    end
  end

  defp several(fun) do
    1..8//1
    |> Enum.take(below(9))
    |> Enum.map(fn _ -> [fun.(), space()] end)
    |> Enum.intersperse([",", space()])
  end

  defp space, do: one_of(["", "", "", " ", "\t", "\r", "  "])
  defp name, do: one_of(["true", "false", "null"])

  # Without an exponent behind a mantissa that is no 64-bit integer: there jiffy calculates with a rounded mantissa.
  defp number do
    sign = one_of(["", "-"])

    case below(4) do
      0 -> [sign, Integer.to_string(below(100))]
      1 -> [sign, Integer.to_string(1 + below(Integer.pow(10, 1 + below(60))))]
      2 -> [sign, Integer.to_string(below(1_000_000)), ".", Integer.to_string(below(1000))]
      3 -> [sign, Integer.to_string(below(100)), one_of([".5", ""]), exponent()]
    end
  end

  defp exponent, do: [one_of(["e", "E"]), one_of(["", "+", "-"]), Integer.to_string(below(40))]

  defp string, do: ["\"", Enum.map(1..20//1 |> Enum.take(below(20)), fn _ -> piece() end), "\""]

  defp piece do
    case below(9) do
      0 -> one_of(["\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"])
      1 -> "\\u" <> hex(below(0xD800))
      2 -> "\\u" <> hex(0xD800 + below(0x400)) <> "\\u" <> hex(0xDC00 + below(0x400))
      3 -> <<one_of([0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF])::utf8>>
      4 -> String.duplicate("long ", below(30))
      _ -> one_of(["a", "bc", " ", "ü", "€", "𝄞", "[", "}", ",", <<127>>])
    end
  end

  defp hex(code) do
    text = code |> Integer.to_string(16) |> String.pad_leading(4, "0")
    one_of([text, String.downcase(text)])
  end
end
