defmodule Tame.Watch.Facts do
  @moduledoc "Facts about a node that stay constant while it is watched."

  alias Tame.Watch.Connection

  @type t :: %{
          node: node(),
          otp: String.t(),
          schedulers: pos_integer(),
          schedulers_online: pos_integer(),
          dirty_cpu_schedulers: non_neg_integer(),
          dirty_cpu_schedulers_online: non_neg_integer(),
          dirty_io_schedulers: non_neg_integer(),
          began_ns: integer()
        }

  @keys ~w(schedulers schedulers_online dirty_cpu_schedulers dirty_cpu_schedulers_online dirty_io_schedulers)a

  @spec collect(node()) :: {:ok, t()} | {:error, term()}
  def collect(node) do
    with {:ok, release} <- Connection.call(node, :erlang, :system_info, [:otp_release]),
         {:ok, began_ns} <- Connection.call(node, :erlang, :monotonic_time, [:nanosecond]) do
      facts = %{node: node, otp: to_string(release), began_ns: began_ns}

      Enum.reduce_while(@keys, {:ok, facts}, fn key, {:ok, facts} ->
        case Connection.call(node, :erlang, :system_info, [key]) do
          {:ok, value} -> {:cont, {:ok, Map.put(facts, key, value)}}
          error -> {:halt, error}
        end
      end)
    end
  end
end
