defmodule Tame.Nng.SurveyTest do
  # How long a survey goes on: the library keeps that time, and not nng.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets
  alias Tame.Nng.Test.{Far, Peer}

  for by <- [:nif, :driver] do
    describe "#{by}:" do
      @describetag by: by

      # In nng 1.5 such a survey waits for ever, on a scheduler.
      test "a survey that is sent just when the one before ends", %{by: by} do
        peer = Peer.start_link()
        os_pid = Peer.call(peer, :os, :getpid)
        on_exit(fn -> System.cmd("kill", ["-9", to_string(os_pid)], stderr_to_stdout: true) end)
        assert Peer.call(peer, Far, :survey_after_survey, [by, 4000]) == :done
      end

      test "what comes after a survey's end is dropped, and is not the next one's", %{by: by} do
        {surveyor, respondent} = pair(:surveyor0, :respondent0, by: by)
        assert :tame_nng.setopts(surveyor, survey_time: 50) == :ok
        {:ok, context} = :tame_nng.context(surveyor)

        for asker <- [surveyor, context, surveyor] do
          :ok = :tame_nng.send(asker, "first")
          assert :tame_nng.recv(respondent, 5000) == {:ok, "first"}
          # estate: it was over before.
          assert :tame_nng.recv(asker) in [{:error, :timeout}, {:error, :estate}]
          :ok = :tame_nng.send(respondent, "too late", 5000)
          Process.sleep(20)
          assert :tame_nng.recv(asker) == {:error, :estate}
          :ok = :tame_nng.setopts(asker, survey_time: :infinity)
          :ok = :tame_nng.send(asker, "second")
          assert :tame_nng.recv(respondent, 5000) == {:ok, "second"}
          assert :tame_nng.recv(asker, 60) == {:error, :timeout}
          :ok = :tame_nng.setopts(asker, survey_time: 60_000)
          :ok = :tame_nng.send(asker, "third")
          assert :tame_nng.recv(respondent, 5000) == {:ok, "third"}
          :ok = :tame_nng.send(respondent, "in time", 5000)
          assert :tame_nng.recv(asker) == {:ok, "in time"}
          :ok = :tame_nng.setopts(asker, survey_time: 50)
        end

        for socket <- [surveyor, respondent], do: assert(:tame_nng.close(socket) == :ok)
      end

      test "the time of a survey, of sockets and contexts", %{by: by} do
        surveyor = open(:surveyor0, by: by)
        assert :tame_nng.getopts(surveyor, [:survey_time]) == {:ok, [survey_time: 1000]}

        for time <- [:infinity, 0, 2_147_483_647] do
          assert :tame_nng.setopts(surveyor, survey_time: time) == :ok
          assert :tame_nng.getopts(surveyor, [:survey_time]) == {:ok, [survey_time: time]}
        end

        assert :tame_nng.setopts(surveyor, survey_time: 2_147_483_648) == {:error, :einval}
        assert :tame_nng.setopts(surveyor, survey_time: -1) == {:error, :einval}
        # A context begins with its socket's.
        assert :tame_nng.setopts(surveyor, survey_time: 1000) == :ok
        {:ok, context} = :tame_nng.context(surveyor)
        assert :tame_nng.setopts(surveyor, survey_time: :infinity) == :ok
        assert :tame_nng.send(context, "who?") == :ok
        assert :tame_nng.recv(context) == {:error, :timeout}
        req = open(:req0, by: by)
        assert :tame_nng.setopts(req, survey_time: 5) == {:error, :enotsup}
        assert :tame_nng.getopts(req, [:survey_time]) == {:error, :enotsup}
        for socket <- [surveyor, req], do: assert(:tame_nng.close(socket) == :ok)
      end
    end
  end
end
