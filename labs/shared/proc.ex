defmodule Tame.Proc do
  @moduledoc """
  What Linux says of processes and threads in `/proc`. Elsewhere there is nothing to read.
  """

  @typedoc """
  A line of `stat`, see proc(5). `:faults` are page faults so far, `:ticks` is the CPU time used so far, and
  `:children_ticks` that of its children that have ended, in ticks of the kernel.
  """
  @type stat :: %{
          state: String.t(),
          parent: String.t(),
          faults: non_neg_integer(),
          ticks: non_neg_integer(),
          children_ticks: non_neg_integer()
        }

  # The names of the threads of normal schedulers, up to OTP 25 and after.
  @scheduler ~r/^(?:(\d+)_scheduler|erts_sched_(\d+))$/

  @doc """
  Reads a file called `stat`, of a process or of a thread; nil when that has ended.

      iex> Tame.Proc.stat("/proc/none/stat")
      nil
  """
  @spec stat(Path.t()) :: nil | stat()
  def stat(path) do
    case File.read(path) do
      {:ok, text} -> parse(text)
      {:error, _} -> nil
    end
  end

  @doc """
  A line of `stat`. The name, in brackets, may hold anything.

      iex> Tame.Proc.parse("7 (a) b) S 3 7 7 0 -1 4194304 100 50 4 2 11 12 13 14 20 0")
      %{state: "S", parent: "3", faults: 104, ticks: 23, children_ticks: 27}
  """
  @spec parse(String.t()) :: stat()
  def parse(text) do
    [state, parent | rest] = text |> String.split(") ") |> List.last() |> String.split()

    [minor, _, major, _, user, system, children_user, children_system] =
      rest |> Enum.slice(5, 8) |> Enum.map(&String.to_integer/1)

    %{
      state: state,
      parent: parent,
      faults: minor + major,
      ticks: user + system,
      children_ticks: children_user + children_system
    }
  end

  @doc "The threads of a VM's normal schedulers, by the scheduler's number: the `stat` of each."
  @spec schedulers(String.t()) :: %{pos_integer() => Path.t()}
  def schedulers(os_pid) do
    for folder <- Path.wildcard("/proc/#{os_pid}/task/*"),
        {:ok, name} <- [File.read(Path.join(folder, "comm"))],
        [_ | numbers] <- [Regex.run(@scheduler, String.trim(name))],
        into: %{},
        do: {numbers |> List.last() |> String.to_integer(), Path.join(folder, "stat")}
  end
end
