defmodule Tame.Host.LibrariesTest do
  # Libraries as they were installed, unmodified: their NIFs called with the same input in a VM and in a
  # host, at least 500 inputs each, values and exceptions compared. In libraries/: jiffy's and crypto's.
  use ExUnit.Case, async: true

  import :proper_types, only: [any: 0, binary: 0, integer: 2, list: 1, oneof: 1, exactly: 1]

  alias Tame.Test.Twin

  test "fast_yaml decodes" do
    twin = Twin.installed!(:p1_yaml, "fast_yaml", :fast_yaml, 0, __ENV__.file)

    Twin.check({oneof([yaml(), binary()]), integer(0, 15)}, twin, 600, fn call, {yaml, flags} ->
      call.(:nif_decode, [yaml, flags])
    end)
  end

  defp yaml do
    line =
      :proper_types.bind(
        {integer(0, 3),
         oneof([
           "- ",
           "key: ",
           "other:\n",
           "&a ",
           "*a",
           "? ",
           "'",
           "\"",
           "[1, 2]",
           "{a: b}",
           "| \n",
           "---\n",
           "# c"
         ]), oneof(["text", "1", "1.5", "-7", "true", "~", "é", "", "0x1F", "1e5"])},
        fn {indent, head, value} ->
          exactly([String.duplicate("  ", indent), head, value, "\n"])
        end,
        false
      )

    :proper_types.bind(list(line), &exactly(IO.iodata_to_binary(&1)), false)
  end

  test "fxml escapes and prints elements" do
    twin = Twin.installed!(:p1_xml, "fxml", :fxml, 0, __ENV__.file)

    Twin.check(oneof([element(), any()]), twin, 600, fn call, element ->
      call.(:element_to_binary, [element])
    end)
  end

  defp element do
    attributes = list({binary(), binary()})
    leaf = oneof([{:xmlcdata, binary()}, {:xmlel, "leaf", attributes, []}])

    {:xmlel, oneof(["a", "b:c", binary()]), attributes,
     list(oneof([leaf, {:xmlel, "inner", attributes, list(leaf)}]))}
  end

  describe "fxml_stream" do
    setup do
      %{twin: Twin.installed!(:p1_xml, "fxml_stream", :fxml_stream, 0, __ENV__.file)}
    end

    test "parses elements", %{twin: twin} do
      Twin.check(oneof([xml(), binary()]), twin, 500, fn call, xml ->
        call.(:parse_element, [xml])
      end)
    end

    test "sends the same messages in the same order, before it returns", %{twin: twin} do
      Twin.check({xml(), integer(1, 20)}, twin, 200, fn call, {xml, size} ->
        state = call.(:new, [self(), 100_000, []])

        Enum.reduce(chunks("<stream>" <> xml <> "</stream>", size), state, fn chunk, state ->
          call.(:parse, [state, chunk])
        end)

        Tame.Host.LibrariesTest.messages()
      end)
    end
  end

  # What has arrived by now; the port's own messages are the host's.
  def messages do
    receive do
      {:"$gen_event", event} -> [event | messages()]
    after
      0 -> []
    end
  end

  defp chunks(binary, size) when byte_size(binary) <= size, do: [binary]

  defp chunks(binary, size) do
    tail = binary_part(binary, size, byte_size(binary) - size)
    [binary_part(binary, 0, size) | chunks(tail, size)]
  end

  defp xml do
    part =
      oneof([
        "<a>",
        "</a>",
        "<b x='1' y=\"2\"/>",
        "text",
        "&amp;",
        "&#233;",
        "<![CDATA[ c ]]>",
        "<c xmlns='u'><d/></c>",
        "é",
        "<!-- c -->"
      ])

    :proper_types.bind(list(part), &exactly(IO.iodata_to_binary(["<r>", &1, "</r>"])), false)
  end

  test "asn1rt_nif encodes and decodes tags" do
    twin = Twin.installed!(:asn1, "asn1rt_nif", :asn1rt_nif, 1, __ENV__.file)

    Twin.check(oneof([binary(), tlv()]), twin, 500, fn call, data ->
      call.(:decode_ber_tlv_raw, [data])
    end)

    Twin.check(tlv_term(), twin, 500, fn call, term -> call.(:encode_ber_tlv, [term]) end)

    Twin.check(oneof([per_program(), no_program()]), twin, 500, fn call, program ->
      call.(:encode_per_complete, [program])
    end)
  end

  defp tlv do
    mapped(list({integer(0, 255), binary()}), fn parts ->
      IO.iodata_to_binary([
        <<48>> | Enum.map(parts, fn {t, b} -> <<t, byte_size(b), b::binary>> end)
      ])
    end)
  end

  # What OTP's generated encoders hand over: a bit, an alignment, the low bits of a byte, octets with
  # a length of one or two bytes. Nothing cut short: asn1 5.0.21 reads on past the end of <<10, 2>>, and what
  # lies there is not the same in two processes.
  defp per_program do
    piece =
      oneof([
        oneof([exactly(<<0>>), exactly(<<1>>), exactly(<<2>>)]),
        mapped({integer(1, 8), integer(0, 255)}, fn {bits, byte} -> <<10, bits, byte>> end),
        mapped(binary(), fn octets -> <<20, byte_size(octets) + 1, 7, octets::binary>> end),
        mapped(binary(), fn octets -> <<21, byte_size(octets) + 1::16, 7, octets::binary>> end)
      ])

    oneof([
      mapped(list(piece), &[<<2>> | &1]),
      mapped(list(piece), &IO.iodata_to_binary([<<2>> | &1]))
    ])
  end

  defp no_program, do: oneof([:a, 1, 2.5, {<<2>>}, [:a], [256], [<<2>> | 1], <<3>>, [<<2>>, 99]])

  defp mapped(generator, fun),
    do: :proper_types.bind(generator, fn value -> exactly(fun.(value)) end, false)

  # No other term: it takes the VM down, in asn1 5.0.21.
  defp tlv_term,
    do:
      oneof([
        {integer(0, 300_000), binary()},
        {integer(0, 3000), list({integer(0, 3000), binary()})}
      ])
end
