defmodule Tame.BindTest do
  # Modules bound to a host in both ways. That the calls of real libraries then come to the same is tested with
  # isolation; here, what happens while there is no library, and every beam that can be found.
  use ExUnit.Case, async: true

  @arities 0..9

  for how <- [:recompile, :overlay] do
    test "#{how}: without a library each function runs its own body, its arguments intact" do
      module = :"tame_bind_#{unquote(how)}"
      beam = compile(module)
      functions = [{:picky, 1} | for(arity <- Enum.reverse(@arities), do: {:nif, arity})]
      key = :tame_versions.new_key()
      {:ok, bound} = :tame_bind.bind(unquote(how), module, key, functions, beam)
      {:module, ^module} = :code.load_binary(module, ~c"nowhere", bound)
      :ok = :tame_library.add(key, module, module)

      on_exit(fn ->
        :ok = :tame_library.remove(module)
        true = :code.delete(module) && true
      end)

      for arity <- @arities do
        args = Enum.map(0..arity//1, &{:argument, &1}) |> Enum.take(arity)
        assert apply(module, :nif, args) == {:own, args}
        assert module.local(args) == {:own, args}
      end

      assert_raise FunctionClauseError, fn -> module.picky(:other) end
      assert {:error, {:load, text}} = module.load(~c"/no/such", 0)
      assert to_string(text) =~ "ended while it was loaded"
      assert {:error, {:load, _}} = module.load_and_go_on(~c"/no/such", 0)

      # Without a row it is not isolated any more, and never runs anything but an exception.
      :ok = :tame_library.remove(module)
      assert {:error, {:load, text}} = module.load(~c"/no/such", 0)
      assert to_string(text) =~ "not isolated"
      raised = catch_error(module.nif())
      assert {:tame, {:restored, %{library: ^module}}} = raised
    end
  end

  test "auto: overlay where there is no debug_info, which recompile says" do
    beam = compile(:tame_bind_auto)
    {:ok, {_, stripped}} = :beam_lib.strip(beam)
    functions = [nif: 1]

    assert {:error, :no_debug_info} =
             :tame_bind.bind(:recompile, :tame_bind_auto, 1, functions, stripped)

    overlaid = :tame_bind.bind(:overlay, :tame_bind_auto, 1, functions, stripped)
    assert {:ok, _} = overlaid
    assert :tame_bind.bind(:auto, :tame_bind_auto, 1, functions, stripped) == overlaid
    assert {:ok, compiled} = :tame_bind.bind(:auto, :tame_bind_auto, 1, functions, beam)
    assert compiled != :tame_bind.bind(:overlay, :tame_bind_auto, 1, functions, beam)
  end

  test "overlay: what is no beam, and an instruction of a later OTP" do
    assert {:error, {:not_a_beam, _}} = :tame_bind.bind(:overlay, :lists, 1, [], "no beam")
    {:ok, _, chunks} = :beam_lib.all_chunks(compile(:tame_bind_later))

    chunks =
      Enum.map(chunks, fn
        {~c"Code", <<size::32, header::binary-size(size), code::binary>>} ->
          {~c"Code", <<size::32, header::binary, 255, code::binary>>}

        other ->
          other
      end)

    {:ok, beam} = :beam_lib.build_module(chunks)

    assert :tame_bind.bind(:overlay, :tame_bind_later, 1, [], beam) ==
             {:error, {:instruction, 255}}
  end

  test "overlay: the instructions of this OTP have the operands that its compiler says" do
    known = Tuple.to_list(:tame_beam.arities())

    for {arity, number} <- Enum.with_index(known, 1),
        {_, said} <- opname(number),
        do: assert({number, arity} == {number, said})

    assert opname(length(known) + 1) == []
  end

  defp opname(number) do
    [:beam_opcodes.opname(number)]
  rescue
    _ -> []
  end

  test "overlay: without functions the code of a module stays, byte for byte" do
    for path <- Path.wildcard(Path.join([:code.lib_dir(:stdlib), "ebin", "*.beam"])) do
      module = path |> Path.basename(".beam") |> String.to_atom()
      beam = File.read!(path)
      {:ok, {_, [imports: imports]}} = :beam_lib.chunks(beam, [:imports])

      changes? =
        Enum.any?([load_nif: 2, system_info: 1], fn {n, a} -> {:erlang, n, a} in imports end)

      {:ok, bound} = :tame_bind.bind(:overlay, module, 1, [], beam)
      assert {module, instructions(bound) == instructions(beam)} == {module, not changes?}
    end
  end

  defp instructions(beam) do
    {:ok, {_, [{_, <<size::32, _::binary-size(size), code::binary>>}]}} =
      :beam_lib.chunks(beam, [~c"Code"])

    code
  end

  # Functions nif/0 to nif/9 that say what they got; enough other atoms for numbers of all lengths.
  defp compile(module) do
    letters = fn arity -> Enum.map_join(0..arity//1, ", ", &"A#{&1}") end
    args = fn arity -> if arity == 0, do: "", else: letters.(arity - 1) end
    nifs = for arity <- @arities, do: "nif(#{args.(arity)}) -> {own, [#{args.(arity)}]}.\n"

    local = for arity <- @arities, do: "local([#{args.(arity)}]) -> nif(#{args.(arity)})"

    source = """
    -module(#{module}).
    -compile([export_all, nowarn_export_all]).
    #{nifs}
    #{Enum.join(local, ";\n")}.
    picky(some) -> ok.
    load(Path, Info) -> erlang:load_nif(Path, Info).
    load_and_go_on(Path, Info) ->
        Loaded = erlang:load_nif(Path, Info),
        put(loaded, Loaded),
        get(loaded).
    many() -> [#{Enum.map_join(1..3000, ",", &"a#{&1}")}].
    """

    forms =
      source
      |> String.split(~r/(?<=\.)\n/, trim: true)
      |> Enum.map(fn form ->
        {:ok, tokens, _} = :erl_scan.string(to_charlist(form))
        {:ok, form} = :erl_parse.parse_form(tokens)
        form
      end)

    {:ok, ^module, beam} = :compile.forms(forms, [:debug_info])
    beam
  end
end
