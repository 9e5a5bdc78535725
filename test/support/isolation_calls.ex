defmodule Tame.IsolationCalls do
  @moduledoc """
  Calls of the public API of real NIF libraries, generated from a seed: made in the VM and with the library
  isolated, they must come to the same.
  """

  alias Tame.Test.SizeClasses

  @doc "The libraries: the modules to isolate, by the name under which `calls/3` knows them."
  def libraries do
    [
      jiffy: [:jiffy],
      fast_yaml: [:fast_yaml],
      fxml: [:fxml],
      fxml_stream: [:fxml_stream],
      crypto: [:crypto],
      asn1: [:asn1rt_nif],
      stringprep: [:stringprep],
      iconv: [:iconv],
      mqtree: [:mqtree],
      bitcask: [:bitcask_nifs],
      tame_exor: [:tame_exor],
      tame_echo: [:tame_echo],
      tame_echo_isolated: [:tame_echo_isolated],
      tame_exor_classic: [:tame_exor_classic]
    ]
  end

  @doc """
  Loads the library's modules, and with them their NIFs. Some have no on_load in their older versions: their
  application calls load_nif/0 when it starts.
  """
  def load(library) do
    for module <- libraries()[library] do
      {:module, ^module} = Code.ensure_loaded(module)

      if module in [:stringprep, :iconv] and function_exported?(module, :load_nif, 0),
        do: :ok = module.load_nif()
    end
  end

  @doc "That number of calls as funs without arguments, each of which comes to a term or raises."
  def calls(library, count, seed) do
    :rand.seed(:exsss, {seed, 1, 1})
    for number <- 1..count, do: call(library, number)
  end

  @doc "What a call comes to: its value, or class, reason and the head of the stack trace."
  def outcome(call) do
    {:ok, call.()}
  rescue
    error -> {:error, error_reason(error), head(__STACKTRACE__)}
  catch
    kind, reason -> {kind, reason, head(__STACKTRACE__)}
  end

  defp error_reason(%ErlangError{original: reason}), do: reason
  defp error_reason(%{__struct__: module} = error), do: {module, Exception.message(error)}

  defp head([{module, function, args, _} | _]) when is_list(args), do: {module, function, args}
  defp head([{module, function, arity, _} | _]), do: {module, function, arity}

  # ---- jiffy --------------------------------------------------------------------------------------

  defp call(:jiffy, number) do
    term = json_term(4)

    case rem(number, 4) do
      0 ->
        fn -> :jiffy.encode(term) end

      1 ->
        fn -> :jiffy.encode(term, [:pretty, :force_utf8]) end

      2 ->
        json = broken(json_text(term))
        fn -> :jiffy.decode(json) end

      3 ->
        json = json_text(term)
        fn -> :jiffy.decode(json, [:return_maps]) end
    end
  end

  # ---- fast_yaml ------------------------------------------------------------------------------------

  defp call(:fast_yaml, number) do
    yaml = yaml_text()
    yaml = if rem(number, 5) == 0, do: broken(yaml), else: yaml
    options = Enum.random([[], [:plain_as_atom], [:sane_scalars]])
    term = json_term(2)

    if rem(number, 3) == 0,
      do: fn -> yaml_encode(term) end,
      else: fn -> :fast_yaml.decode(yaml, options) end
  end

  # ---- fxml ---------------------------------------------------------------------------------------------

  defp call(:fxml, number) do
    element = xml_element(4)
    text = word()

    case rem(number, 3) do
      0 -> fn -> :fxml.element_to_binary(element) end
      1 -> fn -> :fxml.crypt(text <> "<&>\"'" <> text) end
      2 -> fn -> :fxml.remove_cdata([element, {:xmlcdata, text}]) end
    end
  end

  defp call(:fxml_stream, number) do
    xml = xml_text(xml_element(4))
    xml = if rem(number, 4) == 0, do: broken(xml), else: xml

    if rem(number, 5) == 0 do
      cut = :rand.uniform(byte_size(xml) + 1) - 1
      {first, rest} = split(xml, cut)
      fn -> xml_events(["<stream>", first, rest]) end
    else
      fn -> :fxml_stream.parse_element(xml) end
    end
  end

  # ---- crypto -------------------------------------------------------------------------------------------

  defp call(:crypto, number) do
    data = :rand.bytes(:rand.uniform(3000) - 1)
    key = :rand.bytes(Enum.random([16, 24, 32]))
    iv = :rand.bytes(12)
    hash = Enum.random([:sha, :sha256, :sha512, :sha3_256, :blake2b, :md5])

    case rem(number, 9) do
      0 ->
        fn -> :crypto.hash(hash, data) end

      1 ->
        fn -> :crypto.mac(:hmac, hash, key, data) end

      2 ->
        fn -> :crypto.mac(:cmac, :aes_128_cbc, binary_part(key, 0, 16), data) end

      3 ->
        fn -> :crypto.crypto_one_time_aead(:aes_256_gcm, pad(key, 32), iv, data, "aad", true) end

      4 ->
        fn ->
          :crypto.crypto_one_time_aead(
            :chacha20_poly1305,
            pad(key, 32),
            iv,
            data,
            "aad",
            data,
            false
          )
        end

      5 ->
        fn -> incremental_hash(hash, data) end

      6 ->
        fn ->
          :crypto.crypto_one_time(:aes_256_ctr, pad(key, 32), :binary.copy("i", 16), data, true)
        end

      7 ->
        fn -> :crypto.hash(:no_such_hash, data) end

      8 ->
        other = data <> Enum.random(["", "x"])
        fn -> :crypto.exor(data, other) end
    end
  end

  # ---- asn1 -----------------------------------------------------------------------------------------------

  defp call(:asn1, number) do
    tlv = tlv(3)

    case rem(number, 3) do
      0 ->
        fn -> :asn1rt_nif.encode_ber_tlv(tlv) end

      1 ->
        binary = :asn1rt_nif.encode_ber_tlv(tlv)
        fn -> :asn1rt_nif.decode_ber_tlv(binary) end

      2 ->
        fn -> :asn1rt_nif.decode_ber_tlv(:binary.copy(<<number>>, 40)) end
    end
  end

  # ---- stringprep, iconv, mqtree --------------------------------------------------------------------------

  defp call(:stringprep, number) do
    text = word() <> Enum.random(["", "ß", "Ünï", <<255>>, "\u0378"])

    case rem(number, 4) do
      0 -> fn -> :stringprep.nodeprep(text) end
      1 -> fn -> :stringprep.nameprep(text) end
      2 -> fn -> :stringprep.resourceprep(text) end
      3 -> fn -> :stringprep.tolower(text) end
    end
  end

  defp call(:iconv, _number) do
    {from, to} =
      Enum.random([{"utf-8", "utf-16"}, {"utf-8", "latin1"}, {"latin1", "utf-8"}, {"none", "x"}])

    text = word()
    fn -> :iconv.convert(from, to, text) end
  end

  # A tree is a native resource; each call has its own.
  defp call(:mqtree, _number) do
    topics = for _ <- 1..:rand.uniform(20), do: topic(~w(a b + #))
    name = topic(~w(a b))

    fn ->
      tree = :mqtree.new()
      for topic <- topics, do: :mqtree.insert(tree, topic)
      :mqtree.delete(tree, hd(topics))
      {:mqtree.match(tree, name), :mqtree.size(tree), Enum.sort(:mqtree.to_list(tree))}
    end
  end

  # ---- bitcask ----------------------------------------------------------------------------------------------

  # An index of keys and an open file are native resources; each call has its own.
  defp call(:bitcask, number) do
    keys = for n <- 1..:rand.uniform(40), do: {word(), :rand.uniform(5), 10 * n, :rand.uniform(9)}
    {gone, _, _, _} = Enum.random(keys)
    data = :rand.bytes(Enum.random([0, 1, 63, 64, 65, :rand.uniform(20_000)]))
    at = :rand.uniform(byte_size(data) + 10) - 1

    if rem(number, 4) == 0,
      do: fn -> bitcask_file(data, at) end,
      else: fn -> bitcask_keys(keys, gone) end
  end

  # ---- tame's own -----------------------------------------------------------------------------------------

  defp call(:tame_exor, number) do
    # Without bytes, on the process's heap and not, and larger.
    a = :rand.bytes(Enum.random([0, 1, 63, 64, 65, :rand.uniform(20_000)]))
    b = Enum.random([a, :rand.uniform(300), <<a::binary, 1>>, :no_binary])

    function =
      Enum.random(~w(exor exor_inline exor_yielding exor_dirty exor_yielding_dirty exor_chunks)a)

    _ = number
    fn -> apply(:tame_exor, function, [a, b]) end
  end

  defp call(:tame_echo, _number) do
    term = {json_term(3), self(), make_ref(), 1.5, -(2 ** 70), <<1::3>>}
    fn -> :tame_echo.echo(term) end
  end

  # Terms of every size class, but for the largest, which the generator of all of them has.
  defp call(:tame_echo_isolated, number) do
    term =
      SizeClasses.random(:rand.uniform(1_000_000), Enum.at([100, 1000, 20_000], rem(number, 3)))

    fn -> :tame_echo_isolated.echo(term) end
  end

  defp call(:tame_exor_classic, number) do
    a = :rand.bytes(:rand.uniform(20_000) - 1)
    b = :rand.bytes(byte_size(a))

    case rem(number, 3) do
      0 -> fn -> :tame_exor_classic.exor_classic(a, b) end
      1 -> fn -> :tame_exor_classic.exor_loop(a, b) end
      2 -> fn -> :tame_exor_classic.memcpy(a) end
    end
  end

  # Of equal time the first one stays: what each put says is part of what is compared.
  defp bitcask_keys(keys, gone) do
    {:ok, index} = :bitcask_nifs.keydir_new()

    put =
      for {key, file, offset, time} <- keys,
          do: :bitcask_nifs.keydir_put(index, key, file, 10, offset, time, 10)

    removed = :bitcask_nifs.keydir_remove(index, gone)
    got = for {key, _, _, _} <- keys, do: :bitcask_nifs.keydir_get(index, key)
    all = :bitcask_nifs.keydir_fold(index, &[&1 | &2], [], -1, -1)
    {put, removed, got, Enum.sort(all), :bitcask_nifs.keydir_release(index)}
  end

  defp bitcask_file(data, at) do
    path =
      Path.join(
        System.tmp_dir!(),
        "tame_bitcask_#{System.pid()}_#{:erlang.unique_integer([:positive])}"
      )

    try do
      {:ok, file} = :bitcask_nifs.file_open(to_charlist(path), [:create])

      {:bitcask_nifs.file_write(file, data), :bitcask_nifs.file_pread(file, at, 64),
       :bitcask_nifs.file_position(file, 0), :bitcask_nifs.file_read(file, 30_000),
       :bitcask_nifs.file_close(file)}
    after
      File.rm(path)
    end
  end

  # ---- inputs -----------------------------------------------------------------------------------------------

  defp json_term(0), do: scalar()

  defp json_term(depth) do
    case :rand.uniform(4) do
      1 -> for _ <- 1..:rand.uniform(5), do: json_term(depth - 1)
      2 -> for _ <- 1..:rand.uniform(5), into: %{}, do: {word(), json_term(depth - 1)}
      3 -> {for(_ <- 1..:rand.uniform(4), do: {word(), json_term(depth - 1)})}
      4 -> scalar()
    end
  end

  defp scalar do
    Enum.random([
      :rand.uniform(1000),
      -:rand.uniform(Bitwise.bsl(1, 70)),
      :rand.normal(),
      word(),
      true,
      false,
      nil,
      :null,
      "",
      <<255, 254>>,
      1.0e300,
      0
    ])
  end

  defp word do
    length = :rand.uniform(12) - 1
    for _ <- 1..length//1, into: "", do: <<Enum.random(~c'abc é"\\/\n€😀')::utf8>>
  end

  # JSON by jiffy itself where it can; the text, not its making, is what is tested.
  defp json_text(term) do
    :jiffy.encode(term, [:force_utf8]) |> IO.iodata_to_binary()
  rescue
    _ -> ~s({"a": [1, 2.5e3, "x\\u00e9", null, true]})
  catch
    _, _ -> ~s([1, {"b": -0.5}])
  end

  # One byte changed, taken out or added, anywhere.
  defp broken(text) do
    at = :rand.uniform(byte_size(text) + 1) - 1
    {first, rest} = split(text, at)
    Enum.random([first, first <> <<:rand.uniform(256) - 1>> <> rest, rest])
  end

  defp split(binary, at) do
    {binary_part(binary, 0, at), binary_part(binary, at, byte_size(binary) - at)}
  end

  defp yaml_text do
    for n <- 1..:rand.uniform(6), into: "" do
      Enum.random([
        "key#{n}: #{:rand.uniform(99)}\n",
        "list#{n}:\n  - a\n  - 2.5\n  - true\n",
        "map#{n}: {x: 1, y: [1, 2]}\n",
        "text#{n}: |\n  one\n  two\n",
        "k#{n}: \"é\\n\"\n",
        "a#{n}: &x 1\n"
      ])
    end
  end

  defp yaml_encode(term), do: :fast_yaml.encode(term) |> IO.iodata_to_binary()

  defp xml_element(0), do: {:xmlcdata, word()}

  defp xml_element(depth) do
    attributes = for n <- 1..:rand.uniform(3)//1, do: {"a#{n}", word()}
    children = for _ <- 1..:rand.uniform(3)//1, do: xml_element(Enum.random([0, depth - 1]))
    {:xmlel, Enum.random(["a", "b:c", "message"]), attributes, children}
  end

  defp xml_text({:xmlel, name, attributes, children}) do
    attributes = for {key, value} <- attributes, into: "", do: " #{key}='#{xml_escape(value)}'"
    name = String.replace(name, ":", "_")
    "<#{name}#{attributes}>" <> Enum.map_join(children, &xml_text/1) <> "</#{name}>"
  end

  defp xml_text({:xmlcdata, text}), do: xml_escape(text)

  defp xml_escape(text) do
    text
    |> String.replace("&", "&amp;")
    |> String.replace("<", "&lt;")
    |> String.replace("'", "&apos;")
  end

  # Messages of a stream parser to its owner, in order.
  defp xml_events(parts) do
    state = Enum.reduce(parts, :fxml_stream.new(self()), &:fxml_stream.parse(&2, &1))
    :fxml_stream.close(state)
    flush([])
  end

  defp flush(events) do
    receive do
      {:"$gen_event", event} -> flush([event | events])
    after
      0 -> Enum.reverse(events)
    end
  end

  defp topic(words), do: Enum.map_join(1..:rand.uniform(4), "/", fn _ -> Enum.random(words) end)

  defp pad(key, size), do: binary_part(<<key::binary, 0::size(256)>>, 0, size)

  defp incremental_hash(hash, data) do
    state = :crypto.hash_init(hash) |> :crypto.hash_update(data) |> :crypto.hash_update("more")
    {:crypto.hash_final(state), :crypto.hash_final(:crypto.hash_update(state, "again"))}
  end

  defp tlv(0), do: {Enum.random([2, 4, 12, 65_538]), :rand.bytes(:rand.uniform(200) - 1)}

  defp tlv(depth),
    do:
      {Enum.random([16, 17, 131_072]),
       for(_ <- 1..:rand.uniform(3), do: tlv(Enum.random([0, depth - 1])))}
end
