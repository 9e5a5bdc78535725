defmodule Tame.Latency.MethodsTest do
  # The node methods make this VM a distributed one for a while, so nothing runs beside it.
  use ExUnit.Case, async: false
  doctest Tame.Latency.Methods

  alias Tame.Latency.Methods
  alias Tame.Test.SizeClasses

  @ids ~w(beam_call beam_process nif_normal nif_yielding nif_dirty_cpu nif_dirty_io
          nif_yielding_dirty nif_thread_new nif_thread_queue driver_call driver_control
          driver_outputv driver_async isolated port socket_unix socket_tcp c_node java_node)a

  # A term of each kind, sizes on both sides of what the VM and the programs treat differently.
  defp terms do
    captured = make_ref()

    [
      :atom,
      :"an atom with ünicode",
      0,
      -1,
      255,
      256,
      134_217_728,
      576_460_752_303_423_488,
      -576_460_752_303_423_489,
      Bitwise.bsl(1, 64),
      -Bitwise.bsl(1, 2048) + 1,
      Bitwise.bsl(1, 4096),
      1.5,
      -0.1,
      1.0e308,
      [],
      {},
      "",
      %{},
      <<1::size(3)>>,
      <<5::size(13)>>,
      %{:a => %{b: %{"c" => [1, 2.0, nil]}}, 1 => {}},
      Map.new(1..100, &{&1, %{&1 => "#{&1}"}}),
      :binary.copy(<<7>>, 64),
      :binary.copy(<<7>>, 65),
      :binary.copy("0123456789abcdef", 65_536),
      binary_part(:binary.copy(<<7>>, 1000), 3, 500),
      [1 | 2],
      [1, [2 | 3], ~c"string" | :tail],
      Enum.to_list(1..1000),
      captured,
      self(),
      hd(Port.list()),
      fn x -> {captured, x} end,
      &Enum.map/2
    ]
  end

  test "the ids are the fixed ones" do
    assert Methods.ids() == @ids
  end

  test "an application adds a method of its own" do
    Application.put_env(:tame_labs, :latency_methods, [Tame.FakeMethods.Good])
    on_exit(fn -> Application.delete_env(:tame_labs, :latency_methods) end)
    assert :good in Methods.ids()
    assert Methods.fetch(["good"]) == {:ok, [Tame.FakeMethods.Good]}
  end

  test "an unknown id is refused with the valid ones" do
    assert {:error, message} = Methods.fetch(["port", "prot"])
    assert message =~ ~s(unknown method "prot")
    assert message =~ "socket_unix"
  end

  # Another test may have added its own just now.
  for module <- Methods.all() -- [Tame.FakeMethods.Raising, Tame.FakeMethods.Good] do
    id = module.describe().id

    describe "#{id}" do
      # For `make test-sanitized`, which runs those that live in the VM.
      @describetag isolation: module.describe().isolation

      test "brings back every kind of term equal" do
        with_method(unquote(module), fn state ->
          for term <- terms() ++ size_classes(unquote(id)) do
            assert unquote(module).echo(state, term) === term
          end
        end)
      end

      test "brings back arbitrary terms equal" do
        with_method(unquote(module), fn state ->
          Tame.Property.check(generator(unquote(id)), fn term ->
            unquote(module).echo(state, term) === term
          end)
        end)
      end

      test "leaves no message behind" do
        with_method(unquote(module), fn state ->
          for _ <- 1..10, do: unquote(module).echo(state, :term)
          refute_received _
        end)

        refute_received _
      end
    end
  end

  # Java has no word for some of them.
  defp size_classes(id) when id == :java_node, do: []
  defp size_classes(_), do: for({_, term} <- SizeClasses.some(300_000), do: term)

  defp generator(id) when id == :java_node, do: :proper_types.any()
  defp generator(_), do: SizeClasses.type()

  defp with_method(module, fun) do
    case module.open() do
      {:ok, state} ->
        fun.(state)
        assert module.close(state) == :ok

      {:skip, why} ->
        IO.puts("skipped #{module.describe().id}: #{why}")
    end
  end
end
