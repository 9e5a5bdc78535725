defmodule Tame.Load.Closed do
  @moduledoc "Servers in a closed loop, in turns: what a request for hello costs each."

  alias Tame.Load.{H2load, Requests, Rounds}
  alias Tame.Turns

  @typedoc "A name, a module with the behaviour `Tame.Load.Server`, what it is asked by."
  @type server :: {String.t(), module(), :h1 | :h2}

  @doc """
  A row for each server. The plan has `:rounds`, `:seed`, `:port`, `:flags` of the servers' VMs, `:progress`, and may have `:for_s`,
  how long each is asked.
  """
  @spec rows([server()], map()) :: [map()]
  def rows(servers, plan) do
    turns = servers |> Enum.with_index() |> Turns.all(plan.rounds, plan.seed)

    turns
    |> Enum.with_index()
    |> Enum.map(fn {{{name, module, protocol}, place}, done} ->
      plan.progress.(%{what: "#{name} #{protocol}", done: done, total: length(turns)})
      row = %{server: name, protocol: to_string(protocol)}
      spec = plan |> Map.take([:port, :for_s]) |> Map.merge(%{server: module, protocol: protocol})

      case H2load.run(spec, plan.flags) do
        {:ok, %{answered: 0, sent: sent}} ->
          {place, Map.merge(row, none(Requests.none_answered(sent)))}

        {:ok, seen} ->
          {place, row |> Map.merge(%{status: "ok", reason: nil}) |> Map.merge(seen)}

        {:error, why} ->
          {place, Map.merge(row, none(why))}
      end
    end)
    |> Rounds.together(& &1.per_s)
  end

  defp none(why) do
    %{status: "failed", reason: why, per_s: nil, sent: 0, answered: 0, failed: 0}
    |> Map.merge(%{us_per_request: nil, server_us_per_request: nil, client_cores: nil})
  end
end
