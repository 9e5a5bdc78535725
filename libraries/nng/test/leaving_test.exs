defmodule Tame.Nng.LeavingTest do
  # Surveyors that leave a respondent which has not received, or not answered, what they asked.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets

  # nng before 1.10 reads freed memory then (nng#1959). By a context, because a socket of nng 1.5 may forget that it can
  # reply when a connection ends beside a reply.
  for by <- [:nif, :driver], transport <- [:inproc, :ipc, :tcp] do
    test "by #{by} over #{transport}: one that asked twice and leaves before the first reply" do
      respondent = open(:respondent0, by: unquote(by))
      url = listen(respondent, unquote(transport))
      {:ok, context} = :tame_nng.context(respondent)
      stays = open(:surveyor0, by: unquote(by))
      dial(stays, url)

      for _ <- 1..10 do
        leaves = open(:surveyor0, by: unquote(by))
        dial(leaves, url)
        assert connected(respondent, 2)
        :ok = :tame_nng.send(leaves, "one")
        assert :tame_nng.recv(context, 5000) == {:ok, "one"}
        # It waits to be received, and nobody looks at the connection any more.
        :ok = :tame_nng.send(leaves, "two")
        Process.sleep(20)
        assert :tame_nng.close(leaves) == :ok
        # The reply finds that the connection has ended.
        _ = :tame_nng.send(context, "too late", 500)
        Process.sleep(20)
        assert :tame_nng.recv(context, 20) in [{:ok, "two"}, {:error, :timeout}]
        assert connected(respondent, 1)
        :ok = :tame_nng.send(stays, "still there?")
        assert :tame_nng.recv(context, 5000) == {:ok, "still there?"}
        assert :tame_nng.send(context, "yes", 5000) == :ok
        assert :tame_nng.recv(stays, 5000) == {:ok, "yes"}
      end

      for socket <- [respondent, stays], do: assert(:tame_nng.close(socket) == :ok)
    end
  end

  for by <- [:nif, :driver] do
    test "by #{by}: one that leaves among others that ask without end" do
      respondent = open(:respondent0, by: unquote(by))
      url = listen(respondent, :inproc)
      others = for _ <- 1..3, do: open(:surveyor0, by: unquote(by))
      for other <- others, do: dial(other, url)
      asking = for other <- others, do: spawn_link(fn -> ask(other) end)

      for _ <- 1..20 do
        leaves = open(:surveyor0, by: unquote(by))
        dial(leaves, url)
        # Its end is seen at once: nothing of it waits.
        assert :tame_nng.close(leaves) == :ok
        assert connected(respondent, 3)
      end

      for pid <- asking do
        Process.unlink(pid)
        Process.exit(pid, :kill)
      end

      for socket <- [respondent | others], do: assert(:tame_nng.close(socket) == :ok)
    end
  end

  defp ask(surveyor) do
    :ok = :tame_nng.send(surveyor, "who?")
    ask(surveyor)
  end
end
