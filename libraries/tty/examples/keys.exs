# What each key is: mix run examples/keys.exs. q ends it.
defmodule Keys do
  def show(tty) do
    receive do
      {:tame_tty, ^tty, {:key, ?q, []}} ->
        :tame_tty.close(tty)

      {:tame_tty, ^tty, {:closed, reason}} ->
        IO.puts(:stderr, :tame_tty.format_error(reason))

      {:tame_tty, ^tty, event} ->
        :ok = :tame_tty.write(tty, [inspect(event), "\r\n"])
        show(tty)
    end
  end
end

case :tame_tty.open(%{mouse: true}) do
  {:ok, tty} ->
    {:ok, {columns, rows}} = :tame_tty.size(tty)
    :tame_tty.write(tty, "#{columns} by #{rows}. Press keys, use the mouse, paste; q ends it.\r\n")
    Keys.show(tty)

  {:error, reason} ->
    IO.puts(:stderr, :tame_tty.format_error(reason))
    System.halt(1)
end
