defmodule Tame.Host.TermsTest do
  # Terms through the host and back: c_src/host/term, c_src/host/wire.
  use ExUnit.Case, async: true

  alias Tame.Property
  alias Tame.Test.{CLibrary, Contract, Host, Terms}

  setup_all do
    %{library: Contract.build(CLibrary.tmp_dir!())}
  end

  setup %{library: library} do
    %{host: Contract.start(library)}
  end

  test "hard terms come back as they went", %{host: host} do
    for term <- Terms.hard(2_000_000) do
      assert {:value, back} = Host.call(host, :echo, [term])
      assert back === term
      assert {:value, back} = Host.call(host, :copy_there_and_back, [term])
      assert back === term
    end
  end

  test "any term comes back as it went", %{host: host} do
    Property.check(
      Terms.generator(),
      fn term ->
        {:value, term} === Host.call(host, :echo, [term]) and
          {:value, term} === Host.call(host, :copy_there_and_back, [term])
      end,
      numtests: 1000
    )
  end

  test "the library sees the bytes that the VM writes", %{host: host} do
    for term <- Terms.hard() do
      assert {:value, bytes} = Host.call(host, :term_to_binary, [term])
      assert bytes === :erlang.term_to_binary(term)
    end

    Property.check(Terms.generator(), fn term ->
      {:value, :erlang.term_to_binary(term)} === Host.call(host, :term_to_binary, [term])
    end)
  end

  test "the library reads what any VM writes", %{host: host} do
    for term <- Terms.hard(),
        options <- [[], [minor_version: 0], [minor_version: 2]] do
      bytes = :erlang.term_to_binary(term, options)
      assert {:value, {size, back}} = Host.call(host, :binary_to_term, [bytes])
      assert {size, back} === {byte_size(bytes), term}
      # More behind it is none of its business.
      assert {:value, {^size, _}} = Host.call(host, :binary_to_term, [bytes <> "more"])
    end
  end

  test "what is cut off or damaged is no term, and harms nobody", %{host: host} do
    # Damaged funs and references of this VM that it would not read in a reply are refused as well.
    for term <- [{:a, [1.5, "binary", %{a: 1}], self(), make_ref(), fn -> 1 end, <<1::3>>}] do
      bytes = :erlang.term_to_binary(term)

      for size <- 0..(byte_size(bytes) - 1) do
        assert {:value, {0, :none}} =
                 Host.call(host, :binary_to_term, [binary_part(bytes, 0, size)])
      end

      for at <- 1..(byte_size(bytes) - 1), value <- [0, 255, 104, 116] do
        after_it = byte_size(bytes) - at - 1
        damaged = binary_part(bytes, 0, at) <> <<value>> <> binary_part(bytes, at + 1, after_it)
        expected = try do: {:ok, :erlang.binary_to_term(damaged)}, rescue: (_ -> :error)
        result = Host.call(host, :binary_to_term, [damaged])
        if match?({:ok, _}, expected), do: assert({:value, {_, _}} = result)
      end
    end
  end

  test "the order of terms is the VM's", %{host: host} do
    Property.check(
      {Terms.small(), Terms.small()},
      fn {a, b} ->
        order = if a < b, do: -1, else: if(a > b, do: 1, else: 0)
        same = if a === b, do: 1, else: 0
        {:value, {order, same}} === Host.call(host, :order, [{a, b}])
      end,
      numtests: 2000
    )
  end

  test "hard terms are ordered as in the VM", %{host: host} do
    # Funs and what belongs to another node are ordered in another way, as enif_api.def says.
    terms =
      for t <- Terms.hard(),
          not is_function(t) and
            not ((is_pid(t) or is_reference(t) or is_port(t)) and node(t) != node()),
          do: t

    for a <- terms, b <- Enum.take_random(terms, 12) do
      order = if a < b, do: -1, else: if(a > b, do: 1, else: 0)
      same = if a === b, do: 1, else: 0
      assert {:value, {order, same}} === Host.call(host, :order, [{a, b}])
    end
  end
end
