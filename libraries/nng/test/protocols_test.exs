defmodule Tame.Nng.ProtocolsTest do
  # Each protocol over each transport by both ways, and one way against the other.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets

  for listens <- [:nif, :driver], dials <- [:nif, :driver], transport <- [:inproc, :ipc, :tcp] do
    describe "#{listens} listens, #{dials} dials, #{transport}:" do
      @describetag listens: listens
      @describetag dials: dials
      @describetag transport: transport

      test "a request and its reply", tags do
        {rep, req} = connect(tags, :rep0, :req0)
        assert :tame_nng.send(req, ["to ", "be"]) == :ok
        assert :tame_nng.recv(rep, 5000) == {:ok, "to be"}
        assert :tame_nng.send(rep, "") == :ok
        assert :tame_nng.recv(req, 5000) == {:ok, ""}
        done([rep, req])
      end

      test "messages of all sizes, both ways, in their order", tags do
        for protocol <- [:pair0, :pair1] do
          {a, b} = connect(tags, protocol, protocol)
          sizes = [0, 1, 64, 4095, 4096, 65_519, 65_536, 262_144, 262_145, 1_000_000]

          for {from, to} <- [{a, b}, {b, a}] do
            messages = for size <- sizes, do: :crypto.strong_rand_bytes(size)

            task =
              Task.async(fn -> for m <- messages, do: :ok = :tame_nng.send(from, m, 5000) end)

            for message <- messages, do: assert(:tame_nng.recv(to, 5000) == {:ok, message})
            Task.await(task)
          end

          done([a, b])
        end
      end

      test "publications of the topics that are subscribed", tags do
        {pub, sub} = connect(tags, :pub0, :sub0)
        assert :tame_nng.setopts(sub, subscribe: "a.", subscribe: ["b", "."]) == :ok
        for message <- ["a.1", "c.1", "b.1"], do: assert(:tame_nng.send(pub, message) == :ok)
        assert :tame_nng.recv(sub, 5000) == {:ok, "a.1"}
        assert :tame_nng.recv(sub, 5000) == {:ok, "b.1"}
        assert :tame_nng.recv(sub, 10) == {:error, :timeout}
        assert :tame_nng.setopts(sub, unsubscribe: "a.") == :ok
        for message <- ["a.2", "b.2"], do: assert(:tame_nng.send(pub, message) == :ok)
        assert :tame_nng.recv(sub, 5000) == {:ok, "b.2"}
        assert :tame_nng.recv(pub, 10) == {:error, :enotsup}
        assert :tame_nng.send(sub, "x", 10) == {:error, :enotsup}
        done([pub, sub])
      end

      test "a pipeline", tags do
        {pull, push} = connect(tags, :pull0, :push0)
        task = Task.async(fn -> for n <- 1..500, do: :ok = :tame_nng.send(push, <<n::32>>) end)
        for n <- 1..500, do: assert(:tame_nng.recv(pull, 5000) == {:ok, <<n::32>>})
        Task.await(task)
        done([pull, push])
      end

      test "a survey, its responses and its end", tags do
        {surveyor, respondent} = connect(tags, :surveyor0, :respondent0)
        assert :tame_nng.setopts(surveyor, survey_time: 60_000) == :ok
        assert :tame_nng.recv(surveyor) == {:error, :estate}
        assert :tame_nng.send(surveyor, "who?") == :ok
        assert :tame_nng.recv(respondent, 5000) == {:ok, "who?"}
        assert :tame_nng.send(respondent, "me") == :ok
        assert :tame_nng.recv(surveyor, 5000) == {:ok, "me"}
        # Without a deadline of its own: the survey has one.
        assert :tame_nng.setopts(surveyor, survey_time: 1000) == :ok
        assert :tame_nng.send(surveyor, "who else?") == :ok
        assert :tame_nng.recv(surveyor) == {:error, :timeout}
        done([surveyor, respondent])
      end

      test "a bus", tags do
        {a, b} = connect(tags, :bus0, :bus0)
        assert :tame_nng.send(a, "from a") == :ok
        assert :tame_nng.recv(b, 5000) == {:ok, "from a"}
        assert :tame_nng.send(b, "from b") == :ok
        assert :tame_nng.recv(a, 5000) == {:ok, "from b"}
        done([a, b])
      end
    end
  end

  # As the test's tags say.
  defp connect(%{listens: listens, dials: dials, transport: transport}, first, second) do
    a = open(first, by: listens)
    b = open(second, by: dials)
    dial(b, listen(a, transport))
    assert connected(a, 1)
    {a, b}
  end

  # Nothing is left in the mailbox.
  defp done(sockets) do
    for socket <- sockets, do: assert(:tame_nng.close(socket) == :ok)
    refute_received _
  end
end
