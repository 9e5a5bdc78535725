defmodule Tame.Watch.Facts do
  @moduledoc "What does not change of a node while it is watched."

  alias Tame.Watch.Connection

  @type kind :: :normal | :dirty_cpu | :dirty_io

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

  @doc "The kind of a scheduler, by its number as the VM counts them."
  @spec kind(t(), pos_integer()) :: kind()
  def kind(%{schedulers: normal}, id) when id <= normal, do: :normal

  def kind(%{schedulers: normal, dirty_cpu_schedulers: cpu}, id) when id <= normal + cpu,
    do: :dirty_cpu

  def kind(_facts, _id), do: :dirty_io
end
