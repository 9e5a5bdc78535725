defmodule Tame.Report.HTML do
  @moduledoc false
  # Text to HTML. Whatever did not come from this project goes through escape/1.

  @type attributes :: [{atom() | String.t(), String.t()}]

  @spec tag(String.t(), String.t()) :: iodata()
  def tag(name, text), do: tag(name, [], escape(text))

  @doc "An element around `inner`, which is HTML already. Attribute values are text."
  @spec tag(String.t(), attributes(), iodata()) :: iodata()
  def tag(name, attributes, inner) do
    [open(name, attributes), inner, "</", name, ">"]
  end

  @spec open(String.t(), attributes()) :: iodata()
  def open(name, attributes) do
    [?<, name, Enum.map(attributes, fn {k, v} -> [?\s, to_string(k), "=\"", escape(v), ?"] end), ?>]
  end

  @doc "A sentence of which some parts stand out."
  @spec rich(Tame.Report.Words.rich()) :: iodata()
  def rich(text) when is_binary(text), do: escape(text)

  def rich(parts) do
    for part <- parts do
      case part do
        {:strong, text} -> tag("strong", text)
        text -> escape(text)
      end
    end
  end

  @doc "A spot of the colour that a chart uses for what stands beside it."
  @spec dot(String.t()) :: iodata()
  def dot(colour), do: tag("span", [class: "dot", style: "--dot: #{colour}"], [])

  @doc """
  Text that is only text, in an element or in a quoted attribute.

  Bytes that are no UTF-8 and control characters, neither of which a page may hold, become U+FFFD.
  """
  @spec escape(String.t()) :: iodata()
  def escape(text) do
    for chunk <- String.chunk(text, :valid) do
      if String.valid?(chunk), do: for(<<char::utf8 <- chunk>>, do: char(char)), else: "\uFFFD"
    end
  end

  defp char(?<), do: "&lt;"
  defp char(?>), do: "&gt;"
  defp char(?&), do: "&amp;"
  defp char(?"), do: "&quot;"
  defp char(?'), do: "&#39;"
  defp char(char) when char in [?\t, ?\n, ?\r], do: char
  defp char(char) when char < 0x20 or char in 0x7F..0x9F, do: "\uFFFD"
  defp char(char), do: <<char::utf8>>
end
