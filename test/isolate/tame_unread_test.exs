defmodule Tame.UnreadTest do
  # Messages of a library: any number to who reads them, a bounded number to who does not.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{CLibrary, HostileHost, PeerVm}

  @messages 500_000
  @bytes 1_073_741_824

  # Sends that many, as a host's process does; what the last came to, and the count that goes on.
  defp send_all(_pid, 0, _bytes, unread), do: {:ok, unread}

  defp send_all(pid, left, bytes, unread) do
    case :tame_unread.sent(pid, bytes, unread) do
      {:ok, unread} ->
        send(pid, :message)
        send_all(pid, left - 1, bytes, answers(unread, 0))

      {:flood, unread} ->
        {left, unread}
    end
  end

  defp answers(unread, ms) do
    receive do
      {:tame_unread, seen} -> answers(:tame_unread.looked(seen, unread), ms)
    after
      ms -> unread
    end
  end

  defp reader, do: spawn_link(&read/0)
  defp read, do: receive(do: (_ -> read()))

  # Its own messages are read when it is told, and only then.
  defp sleeper, do: spawn_link(fn -> receive(do: (:wake -> read())) end)

  # A reader, and who keeps it from running until it is told, and has done that. What is tested is how long
  # that may be, so the tests below sleep: far less than a second.
  defp kept_from_running(before_it_runs) do
    pid = reader()
    test = self()

    keeper =
      spawn_link(fn ->
        true = :erlang.suspend_process(pid)
        send(test, {self(), :keeps})
        receive(do: (:full -> before_it_runs.()))
      end)

    assert_receive {^keeper, :keeps}
    {pid, keeper}
  end

  test "who reads gets any number, of any size" do
    unread = :tame_unread.new()
    assert {:ok, unread} = send_all(reader(), 3 * @messages, 100, unread)
    assert {:ok, _} = send_all(reader(), 10_000, 1_048_576, unread)
  end

  # A busy machine keeps who reads, or who sends, for longer than they may be.
  @tries 10

  test "who reads, and had no scheduler for some time, gets any number too" do
    assert Enum.any?(1..@tries, fn _ ->
             # Time itself is tested: for how long a reader may have had no scheduler.
             {pid, keeper} = kept_from_running(fn -> Process.sleep(300) end)
             assert {:ok, unread} = send_all(pid, @messages, 100, :tame_unread.new())
             send(keeper, :full)
             match?({:ok, _}, send_all(pid, @messages, 100, unread))
           end)
  end

  test "unless too much comes for who sends meanwhile" do
    test = self()

    assert Enum.any?(1..@tries, fn _ ->
             # Time itself is tested: what comes for the sender while the reader has no scheduler.
             {pid, keeper} =
               kept_from_running(fn ->
                 Process.sleep(100)
                 for _ <- 1..3000, do: send(test, :written)
                 Process.sleep(400)
                 send(test, :all_written)
               end)

             assert {:ok, unread} = send_all(pid, @messages, 100, :tame_unread.new())
             send(keeper, :full)
             ended = send_all(pid, @messages, 100, unread)
             all_written()
             match?({@messages, _}, ended)
           end)
  end

  defp all_written do
    receive do
      :written -> all_written()
      :all_written -> :ok
    end
  end

  test "who does not read gets so many, and no more" do
    assert {left, _} = send_all(sleeper(), 2 * @messages, 100, :tame_unread.new())
    assert left == @messages
  end

  test "nor more than so much" do
    mib = 1_048_576
    assert {left, _} = send_all(sleeper(), 3000, mib, :tame_unread.new())
    assert 3000 - left == div(@bytes, mib)
  end

  test "all receivers count together, and who dies no more" do
    sleepers = for _ <- 1..1000, do: sleeper()

    outcome =
      Enum.reduce_while(sleepers, :tame_unread.new(), fn pid, unread ->
        case send_all(pid, 600, 100, unread) do
          {:ok, unread} -> {:cont, unread}
          {_left, unread} -> {:halt, {:flood, unread}}
        end
      end)

    assert {:flood, unread} = outcome

    for pid <- sleepers do
      Process.unlink(pid)
      Process.exit(pid, :kill)
    end

    assert {:ok, _} = sends_again(reader(), unread)
  end

  test "who reads later is sent to again" do
    pid = sleeper()
    assert {_, unread} = send_all(pid, 2 * @messages, 100, :tame_unread.new())
    send(pid, :wake)

    assert Await.until(
             fn -> Process.info(pid, :message_queue_len) == {:message_queue_len, 0} end,
             60_000
           )

    assert {:ok, _} = sends_again(pid, unread)
  end

  # What is refused asks anew.
  defp sends_again(pid, unread, tries \\ 50) do
    case :tame_unread.sent(pid, 100, unread) do
      {:flood, unread} when tries > 0 -> sends_again(pid, answers(unread, 100), tries - 1)
      other -> other
    end
  end

  test "a host that floods its caller ends, as does each after it, and the caller has what it may" do
    folder = CLibrary.tmp_dir!()
    program = HostileHost.build!(folder)
    peer = PeerVm.start()
    seen = PeerVm.scenario(peer, Tame.HostileScenarios, :flood, [program, folder])
    assert seen.report =~ "was killed, because nobody reads what it sends, last to <"
    assert seen.again, inspect(seen)
    # Its own, of the call that it made, beside them.
    assert seen.waiting in @messages..(@messages + 2), inspect(seen)
  end
end
