defmodule Tame.Host.ContractSelectTest do
  # As contract_test.exs: descriptors that are waited for. The same steps in the VM and in a host come to the same
  # results and messages, which are those of a model.
  use ExUnit.Case, async: false

  import Bitwise

  alias Tame.{Await, Property}
  alias Tame.Test.{CLibrary, Contract, Host}

  @read 1
  @write 2
  @stop 4
  @cancel 8
  @custom 16
  @error 32

  @stop_called 1
  @read_cancelled 16
  @write_cancelled 32

  setup_all do
    %{library: Contract.here!(CLibrary.tmp_dir!())}
  end

  setup %{library: library} do
    host = Contract.start_alike(library)

    there = fn name, arg ->
      {:value, value} = Host.call(host, name, [arg])
      value
    end

    %{worlds: [vm: &apply(:contract_nif, &1, [&2]), host: there], host: host}
  end

  describe "an end of a pipe" do
    test "is told once, to who asked last, with what it asked for", %{worlds: worlds} do
      for {world, call} <- worlds do
        {r, w} = call.(:select_open, :pipe)
        other = spawn_link(fn -> Process.sleep(:infinity) end)
        ref = make_ref()

        assert 0 == call.(:select, {r, @read, other, make_ref(), 0})
        assert 0 == call.(:select, {r, @read, self(), ref, 0})
        assert 1 == call.(:select_put, {w, "x"})
        assert {:select, handle, ^ref, :ready_input} = message(call, world)
        assert call.(:select_slot, handle) == r
        assert quiet?(call)

        # The byte is still there.
        assert 0 == call.(:select, {r, @read, self(), :undefined, 0})
        assert {:select, _, :undefined, :ready_input} = message(call, world)
        assert 0 == call.(:select, {w, @write, self(), ref, 0})
        assert {:select, _, ^ref, :ready_output} = message(call, world)
        for slot <- [r, w], do: assert(@stop_called == call.(:select, {slot, @stop, :null, 0, 0}))
        for slot <- [r, w], do: assert({1, 1, true} == call.(:select_stops, slot))
      end
    end

    test "tells its errors only to who asks for them", %{worlds: worlds} do
      for {world, call} <- worlds do
        {r, w} = call.(:select_open, :pipe)
        assert 0 == call.(:select, {w, @error, self(), :undefined, 0})
        call.(:select_close, r)
        assert {:select, _, :undefined, :ready_error} = message(call, world)
        assert 0 == call.(:select, {w, @write, self(), :undefined, 0})
        assert {:select, _, :undefined, :ready_output} = message(call, world)

        {r, w} = call.(:select_open, :pipe)
        assert 0 == call.(:select, {r, @read, self(), :undefined, 0})
        call.(:select_close, w)
        assert {:select, _, :undefined, :ready_input} = message(call, world)
      end
    end

    test "that is armed is cancelled by stopping it", %{worlds: worlds} do
      for {_world, call} <- worlds do
        {r, w} = call.(:select_open, :pipe)
        assert 0 == call.(:select, {r, @read ||| @error, self(), :undefined, 0})

        # Of errors the VM says nothing.
        assert @stop_called + @read_cancelled == call.(:select, {r, @stop, :null, 0, 0})

        assert {1, 1, true} == call.(:select_stops, r)
        # Without having been selected, and once more.
        assert @stop_called == call.(:select, {w, @stop, :null, 0, 0})
        assert {1, 1, true} == call.(:select_stops, w)
        assert quiet?(call)
      end
    end

    test "keeps its resource until it is stopped", %{worlds: worlds} do
      for {world, call} <- worlds do
        {r, w} = call.(:select_open, :pipe)
        before = call.(:select_destructors, [])
        assert 0 == call.(:select, {r, @read, self(), {:from_select, r}, 0})
        assert @read_cancelled == call.(:select, {r, @read ||| @cancel, :null, 0, 0})
        assert 0 == call.(:select, {r, @read ||| @custom, self(), {:from_select, [r]}, 1})
        call.(:select_let_go, r)
        call.(:select_put, {w, "x"})
        assert [r] == message(call, world)
        assert call.(:select_destructors, []) == before
      end
    end
  end

  test "whatever is done with a pipe", %{worlds: worlds} do
    Property.check(
      :proper_types.list(step()),
      fn steps ->
        for {world, call} <- worlds do
          {r, w} = call.(:select_open, :pipe)
          start = %{r: r, w: w, bytes: 0, armed: %{}, world: world, call: call}
          state = Enum.reduce(steps, start, &take/2)
          for slot <- [r, w], do: assert(stopped(state, slot) == stop(state, slot))
          assert quiet?(call)
        end

        true
      end,
      numtests: 60,
      max_size: 30
    )
  end

  # An end is armed for what it is for, by a reference or a message; cancelled; written to; read.
  defp step do
    import :proper_types, only: [oneof: 1, elements: 1]
    message = elements([:ref, :undefined, :custom, :custom_env])
    oneof([{:arm, elements([:r, :w]), message}, {:cancel, elements([:r, :w])}, :put, :take])
  end

  defp take({:arm, which, kind}, state) do
    ref = make_ref()

    {flag, message, env, expected} =
      case kind do
        :ref -> {0, ref, 0, {:select, ref}}
        :undefined -> {0, :undefined, 0, {:select, :undefined}}
        :custom -> {@custom, {:from_select, {ref, "bytes"}}, 0, {ref, "bytes"}}
        :custom_env -> {@custom, [ref | %{a: ref}], 1, [ref | %{a: ref}]}
      end

    assert 0 == state.call.(:select, {state[which], flag(which) ||| flag, self(), message, env})
    told(put_in(state.armed[which], expected))
  end

  defp take({:cancel, which}, state) do
    expected = if state.armed[which], do: cancelled(which), else: 0
    assert expected == state.call.(:select, {state[which], flag(which) ||| @cancel, :null, 0, 0})
    %{state | armed: Map.delete(state.armed, which)}
  end

  defp take(:put, state) do
    assert 3 == state.call.(:select_put, {state.w, "abc"})
    told(%{state | bytes: state.bytes + 3})
  end

  defp take(:take, state) do
    assert state.bytes == state.call.(:select_take, state.r)
    %{state | bytes: 0}
  end

  # What is ready is told, and no more armed.
  defp told(state) do
    ready = for {which, _} <- state.armed, which == :w or state.bytes > 0, do: which

    for which <- ready do
      name = %{r: :ready_input, w: :ready_output}[which]

      case state.armed[which] do
        {:select, ref} ->
          assert {:select, handle, ^ref, ^name} = message(state.call, state.world)
          assert state.call.(:select_slot, handle) == state[which]

        whole ->
          assert whole == message(state.call, state.world)
      end
    end

    %{state | armed: Map.drop(state.armed, ready)}
  end

  defp stop(state, slot), do: state.call.(:select, {slot, @stop, :null, 0, 0})

  defp stopped(state, slot) do
    for {which, _} <- state.armed, state[which] == slot, reduce: @stop_called do
      bits -> bits ||| cancelled(which)
    end
  end

  defp flag(:r), do: @read
  defp flag(:w), do: @write
  defp cancelled(:r), do: @read_cancelled
  defp cancelled(:w), do: @write_cancelled

  describe "a socket" do
    test "is told for both ways, each once", %{worlds: worlds} do
      for {world, call} <- worlds do
        {a, b} = call.(:select_open, :sockets)
        assert 0 == call.(:select, {a, @read ||| @write, self(), :undefined, 0})
        assert {:select, _, :undefined, :ready_output} = message(call, world)
        assert quiet?(call)
        call.(:select_put, {b, "x"})
        assert {:select, _, :undefined, :ready_input} = message(call, world)
        assert quiet?(call)
      end
    end
  end

  test "a file is always ready", %{worlds: worlds} do
    for {world, call} <- worlds, path <- ["/dev/null", "/etc/passwd"] do
      {slot} = call.(:select_open, path)
      assert 0 == call.(:select, {slot, @read, self(), :undefined, 0})
      assert {:select, _, :undefined, :ready_input} = message(call, world)
      # The VM may call it later, from another thread.
      assert (call.(:select, {slot, @stop, :null, 0, 0}) &&& 3) in [1, 2]
      assert Await.until(fn -> match?({1, _, true}, call.(:select_stops, slot)) end)
    end
  end

  test "numbers that are no descriptors are refused", %{worlds: worlds} do
    for {_world, call} <- worlds do
      {r, _w} = call.(:select_open, :pipe)
      assert call.(:select_number, {r, -1}) == -0x80000000 + 4
      assert call.(:select_number, {r, 0x7FFFFFFF}) == -0x80000000 + 4
    end
  end

  # The VM takes it, and tells its log.
  test "a number that is no open descriptor is refused in a host", %{worlds: [_vm, {_, call}]} do
    {r, _w} = call.(:select_open, :pipe)
    assert call.(:select_number, {r, 1000}) == -0x80000000 + 8
  end

  test "an error is cancelled", %{worlds: worlds} do
    for {_world, call} <- worlds do
      {_r, w} = call.(:select_open, :pipe)
      assert 0 == call.(:select, {w, @error, self(), :undefined, 0})
      assert 64 == call.(:select, {w, @error ||| @cancel, :null, 0, 0})
      assert 0 == call.(:select, {w, @error ||| @cancel, :null, 0, 0})
    end
  end

  test "a descriptor that was closed before it was stopped tells nobody, and its number serves again",
       %{worlds: worlds} do
    for {world, call} <- worlds do
      {r, w} = call.(:select_open, :pipe)
      assert 0 == call.(:select, {r, @read, self(), :undefined, 0})
      call.(:select_put, {w, "x"})
      assert {:select, _, :undefined, :ready_input} = message(call, world)
      call.(:select_close, r)
      assert call.(:select, {r, @read, self(), :undefined, 0}) < 0
      {r, w} = call.(:select_open, :pipe)
      assert 0 == call.(:select, {r, @read, self(), :undefined, 0})
      call.(:select_put, {w, "x"})
      assert {:select, handle, :undefined, :ready_input} = message(call, world)
      assert call.(:select_slot, handle) == r
    end
  end

  test "a second resource has the descriptor, and the first is let go", %{worlds: worlds} do
    for {world, call} <- worlds do
      {r, w} = call.(:select_open, :pipe)
      thief = call.(:select_again, r)
      before = call.(:select_destructors, [])
      assert 0 == call.(:select, {r, @read, self(), :undefined, 0})
      assert 0 == call.(:select, {thief, @read, self(), :undefined, 0})
      call.(:select_put, {w, "x"})
      assert {:select, handle, :undefined, :ready_input} = message(call, world)
      assert call.(:select_slot, handle) == thief
      assert quiet?(call)
      assert {0, 0, false} == call.(:select_stops, r)
      assert call.(:select_destructors, []) == before
    end
  end

  test "three hundred pipes at once", %{worlds: worlds} do
    for {world, call} <- worlds do
      pipes = for _ <- 1..300, do: call.(:select_open, :pipe)

      for {r, _} <- pipes,
          do: assert(0 == call.(:select, {r, @read ||| @custom, self(), {:from_select, r}, 0}))

      for {_, w} <- Enum.shuffle(pipes), do: call.(:select_put, {w, "x"})
      told = for _ <- pipes, do: message(call, world)
      assert Enum.sort(told) == Enum.sort(for {r, _} <- pipes, do: r)

      for {r, w} <- pipes,
          slot <- [r, w],
          do: assert(@stop_called == call.(:select, {slot, @stop, :null, 0, 0}))
    end
  end

  # The next message. A host's come when its frames are read, as during a call.
  defp message(call, world, tries \\ 2000) do
    receive do
      {:from_select, message} -> message
      {:select, _, _, _} = message -> message
      [_ | %{}] = message -> message
    after
      if(tries == 2000, do: 0, else: 5) ->
        if tries == 0, do: flunk("no message in the #{world}")
        call.(:echo, 1)
        message(call, world, tries - 1)
    end
  end

  defp ours?({:from_select, _}), do: true
  defp ours?({:select, _, _, _}), do: true
  defp ours?([_ | %{}]), do: true
  defp ours?(_), do: false

  # No message comes, although another descriptor's, asked for later, does.
  defp quiet?(call) do
    {_, w} = call.(:select_open, :pipe)
    assert 0 == call.(:select, {w, @write ||| @custom, self(), {:from_select, :last}, 0})
    assert :last == message(call, :last)
    assert @stop_called == call.(:select, {w, @stop, :null, 0, 0})
    {:messages, messages} = Process.info(self(), :messages)
    not Enum.any?(messages, &ours?/1)
  end
end
