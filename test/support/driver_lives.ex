defmodule Tame.DriverLives do
  @moduledoc """
  Commands to ports of `Tame.DriverProbe` in any order, inside a throw-away emulator, beside a model of each port: whether it
  lives, and which numbers it is to send, in order.
  """

  import Tame.DriverProbe

  alias Tame.Await

  @doc "True when each port did what its model says, and nothing is left."
  def run(commands) do
    :ok = load()
    before = settled()
    lives = Enum.reduce(commands, [], fn command, lives -> step(command, lives) end)
    right? = lives |> Enum.map(&last/1) |> Enum.all?()
    now = settled()

    right? and now.broken == 0 and now.pieces == 0 and now.starts == now.stops and
      now.begun == now.ended and now.starts - before.starts == length(lives)
  end

  defp step({:open, options}, lives) do
    parent = self()
    owner = spawn(fn -> relay(parent, open(options)) end)
    port = receive(do: ({^owner, :port, port} -> port))
    lives ++ [%{owner: owner, port: port, lives?: true, numbers: [], next: 1}]
  end

  defp step(_command, []), do: []

  defp step({what, i}, lives) do
    List.update_at(lives, rem(i, length(lives)), fn life -> to(what, life) end)
  end

  defp to(what, %{lives?: true} = life) when what in [:close, :kill_owner, :kill_port] do
    case what do
      :close -> tell(life, :close)
      :kill_owner -> Process.exit(life.owner, :kill)
      :kill_port -> Process.exit(life.port, :kill)
    end

    %{life | lives?: false}
  end

  # What is gone stays gone, and what is going to be takes work at most until then.
  defp to(_what, %{lives?: false} = life) do
    true = ask(life.port, :work_cpu) in [:ok, :refused]
    life
  end

  defp to(:release, life) do
    :ok = ask(life.port, :release)
    life
  end

  # The driver's control makes it hold what it is told to hold from now on.
  defp to(what, life) do
    :ok = ask(life.port, what, life.next, 50)
    %{life | numbers: [life.next | life.numbers], next: life.next + 1}
  end

  defp last(%{lives?: false}), do: true

  defp last(life) do
    wanted = Enum.reverse(life.numbers)

    all? =
      Await.until(fn ->
        :ok = ask(life.port, :release)
        tell(life, :numbers) |> length() == length(wanted)
      end)

    same? = tell(life, :numbers) == wanted
    tell(life, :close)
    all? and same?
  end

  defp tell(life, what) do
    send(life.owner, {self(), what})

    receive(
      do: ({owner, :answer, answer} when owner == life.owner -> answer),
      after: (10_000 -> :none)
    )
  end

  defp relay(parent, port) do
    send(parent, {self(), :port, port})
    relay_loop(port, [])
  end

  defp relay_loop(port, numbers) do
    receive do
      {^port, {:data, <<n::32>>}} ->
        relay_loop(port, [n | numbers])

      {from, :numbers} ->
        send(from, {self(), :answer, Enum.reverse(numbers)})
        relay_loop(port, numbers)

      {from, :close} ->
        send(from, {self(), :answer, Port.close(port)})
        relay_loop(port, numbers)
    end
  end
end
