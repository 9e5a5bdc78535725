defmodule Tame.TTY.BadargTest do
  use ExUnit.Case, async: true

  for {[function | args] = call, argument, sentence} <- [
        {[:open, [:mouse]], 1, "must be a map of options"},
        {[:open, %{mose: true}], 1, "mose: expected alternate, cursor, mouse or paste"},
        {[:open, %{mouse: 1}], 1, "mouse: expected alternate, cursor, mouse or paste"},
        {[:close, :tty], 1, "must be a terminal, as open/1 gives it"},
        {[:write, "tty", "x"], 1, "must be a terminal, as open/1 gives it"},
        {[:size, nil], 1, "must be a terminal, as open/1 gives it"},
        {[:mode, 1, :raw], 1, "must be a terminal, as open/1 gives it"},
        {[:write, :self, :x], 2, "must be iodata or characters"},
        {[:write, :self, [-1]], 2, "must be iodata or characters"},
        {[:mode, :self, :rare], 2, "must be raw or cooked"}
      ] do
    test inspect(call) do
      args = for arg <- unquote(Macro.escape(args)), do: if(arg == :self, do: self(), else: arg)

      try do
        apply(:tame_tty, unquote(function), args)
        flunk("it is taken")
      rescue
        error in ArgumentError ->
          # As Elixir shows what format_error/2 says of it.
          {text, _} = Exception.blame(:error, error, __STACKTRACE__)

          said =
            :tame_tty.format_error(:badarg, __STACKTRACE__)[unquote(argument)]
            |> IO.chardata_to_string()

          assert said =~ unquote(sentence)
          assert Exception.message(text) =~ unquote(sentence)
      end
    end
  end

  test "a session that has ended is closed" do
    pid = spawn(fn -> :ok end)
    monitor = Process.monitor(pid)
    assert_receive {:DOWN, ^monitor, _, _, _}
    assert :tame_tty.close(pid) == :ok
    assert :tame_tty.write(pid, "x") == {:error, :closed}
    assert :tame_tty.size(pid) == {:error, :closed}
    assert :tame_tty.mode(pid, :raw) == {:error, :closed}
  end

  test "each reason is a sentence" do
    for reason <- [:no_terminal, :background, :busy, :shell, :reader, :hangup, :eio, 5] do
      assert [_ | _] = :tame_tty.format_error(reason)
    end

    assert :tame_tty.format_error({:guard, "é"}) == ~c"the guard of the terminal has ended: é"
  end
end
