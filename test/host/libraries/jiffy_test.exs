defmodule Tame.Host.Libraries.JiffyTest do
  # jiffy, unmodified, in a VM and in a host, as in libraries_test.exs.
  use ExUnit.Case, async: true

  import :proper_types,
    only: [any: 0, binary: 0, integer: 2, list: 1, oneof: 1, exactly: 1, float: 0, bool: 0]

  alias Tame.Test.Twin

  describe "jiffy" do
    @describetag needs: :jiffy

    setup do
      %{twin: Twin.installed!(:jiffy, "jiffy", :jiffy, 0, __ENV__.file)}
    end

    test "decodes", %{twin: twin} do
      Twin.check(
        {json(),
         oneof([[], [:return_maps], [:use_nil], [:dedupe_keys], [:copy_strings], [:return_trailer]])},
        twin,
        600,
        fn call, {json, options} ->
          decode(call, json, options)
        end
      )
    end

    test "refuses what is no JSON", %{twin: twin} do
      Twin.check(oneof([binary(), damaged(), any()]), twin, 400, fn call, input ->
        decode(call, input, [])
      end)
    end

    test "encodes", %{twin: twin} do
      Twin.check(
        {ejson(),
         oneof([[], [:uescape], [:pretty], [:force_utf8], [:escape_forward_slashes], [:use_nil]])},
        twin,
        600,
        fn call, {ejson, options} ->
          encode(call, ejson, options)
        end
      )

      Twin.check(any(), twin, 300, fn call, term -> encode(call, term, []) end)
    end

    test "large documents, in many slices", %{twin: twin} do
      object =
        for(i <- 1..500, do: {"key#{i}", [i, i / 3, "text é", nil, %{"in" => i}]}) |> Map.new()

      json = IO.iodata_to_binary(json_of(Enum.map(1..20, fn _ -> object end)))

      {:value, {:ok, decoded}} =
        Twin.same(twin, fn call -> {:ok, decode(call, json, [:return_maps])} end)

      Twin.same(twin, fn call -> :erlang.iolist_to_binary(encode(call, decoded, [])) end)
    end
  end

  # As jiffy.erl does: a NIF that ran out of its time slice says where it was.
  defp decode(call, json, options) do
    case call.(:nif_decode_init, [json, options]) do
      {:iter, {decoder, value, objects, current}} ->
        decode_more(call, json, decoder, value, objects, current)

      result ->
        result
    end
  end

  defp decode_more(call, json, decoder, value, objects, current) do
    case call.(:nif_decode_iter, [json, decoder, value, objects, current]) do
      {:iter, {decoder, value, objects, current}} ->
        decode_more(call, json, decoder, value, objects, current)

      result ->
        result
    end
  end

  defp encode(call, ejson, options) do
    case call.(:nif_encode_init, [ejson, options]) do
      {:iter, {encoder, stack, out}} -> encode_more(call, encoder, stack, out)
      result -> result
    end
  end

  defp encode_more(call, encoder, stack, out) do
    case call.(:nif_encode_iter, [encoder, stack, out]) do
      {:iter, {encoder, stack, out}} -> encode_more(call, encoder, stack, out)
      result -> result
    end
  end

  defp json, do: :proper_types.bind(ejson_maps(), &exactly(IO.iodata_to_binary(json_of(&1))), false)

  defp damaged do
    :proper_types.bind(
      {json(), integer(0, 200), integer(0, 255)},
      fn {json, at, byte} ->
        at = rem(at, byte_size(json))
        head = binary_part(json, 0, at)
        tail = binary_part(json, at + 1, byte_size(json) - at - 1)
        exactly(head <> <<byte>> <> tail)
      end,
      false
    )
  end

  defp text,
    do:
      :proper_types.bind(
        list(
          oneof([
            integer(32, 126),
            integer(0, 31),
            integer(0x80, 0xD7FF),
            integer(0x10000, 0x10FFFF)
          ])
        ),
        &exactly(List.to_string(&1)),
        false
      )

  defp scalar,
    do:
      oneof([
        text(),
        integer(-1000, 1000),
        integer(-Bitwise.bsl(1, 70), Bitwise.bsl(1, 70)),
        float(),
        bool(),
        :null
      ])

  defp ejson_maps do
    inner = oneof([scalar(), list(scalar()), maps(scalar())])
    oneof([scalar(), list(inner), maps(inner)])
  end

  defp maps(value), do: :proper_types.bind(list({text(), value}), &exactly(Map.new(&1)), false)

  defp ejson do
    inner = oneof([scalar(), :an_atom, binary(), {list({oneof([text(), :key]), scalar()})}])
    oneof([inner, list(inner), maps(inner), {list({text(), inner})}])
  end

  defp json_of(:null), do: "null"
  defp json_of(nil), do: "null"
  defp json_of(b) when is_boolean(b), do: to_string(b)
  defp json_of(n) when is_number(n), do: to_string(n)

  defp json_of(list) when is_list(list),
    do: [?[, list |> Enum.map(&json_of/1) |> Enum.intersperse(?,), ?]]

  defp json_of(map) when is_map(map),
    do: [
      ?{,
      map |> Enum.map(fn {k, v} -> [json_of(k), ?:, json_of(v)] end) |> Enum.intersperse(?,),
      ?}
    ]

  defp json_of(text) when is_binary(text) do
    escaped =
      for <<c::utf8 <- text>>,
        do:
          if(c < 32 or c in [?", ?\\],
            do: "\\u" <> String.pad_leading(Integer.to_string(c, 16), 4, "0"),
            else: <<c::utf8>>
          )

    [?", escaped, ?"]
  end
end
