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

  @typedoc "A thread: which kind of scheduler it is, if it is one, the number of that, and its folder."
  @type thread :: {:normal | :dirty | :other, nil | pos_integer(), Path.t()}

  @typedoc "Where the CPU time of a thread is read. A file that is held open is that of the process that opened it."
  @opaque time :: {:schedstat, :file.fd()} | {:stat, Path.t()}

  # The names of the threads of schedulers, up to OTP 25 and after.
  @schedulers [
    normal: ~r/^(?:(\d+)_scheduler|erts_sched_(\d+))$/,
    dirty: ~r/^(?:(\d+)_dirty_|erts_d(?:cpu|io)s_(\d+))/
  ]

  # The kernel reports a hundred ticks a second to programs, also where its own clock is finer.
  @tick_ns 10_000_000

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
    for {:normal, number, folder} <- threads(os_pid),
        into: %{},
        do: {number, Path.join(folder, "stat")}
  end

  @doc "All threads of a process."
  @spec threads(String.t()) :: [thread()]
  def threads(os_pid) do
    for folder <- Path.wildcard("/proc/#{os_pid}/task/*"),
        {:ok, name} <- [File.read(Path.join(folder, "comm"))] do
      {kind, number} = scheduler(String.trim(name))
      {kind, number, folder}
    end
  end

  @doc """
  What the thread with that name is: the kernel cuts names after 15 bytes.

      iex> Enum.map(~w(2_scheduler 1_dirty_cpu_sch erts_dios_10 1_poller), &Tame.Proc.scheduler/1)
      [{:normal, 2}, {:dirty, 1}, {:dirty, 10}, {:other, nil}]
  """
  @spec scheduler(String.t()) :: {:normal | :dirty | :other, nil | pos_integer()}
  def scheduler(name) do
    Enum.find_value(@schedulers, {:other, nil}, fn {kind, names} ->
      with [_ | numbers] <- Regex.run(names, name),
           do: {kind, numbers |> List.last() |> String.to_integer()}
    end)
  end

  @doc "Where the CPU time of the thread in that folder is read: in ns where the kernel counts so, else in ticks."
  @spec open_time(Path.t()) :: time()
  def open_time(folder) do
    case :file.open(Path.join(folder, "schedstat"), [:read, :raw, :binary]) do
      {:ok, file} -> {:schedstat, file}
      {:error, _} -> {:stat, Path.join(folder, "stat")}
    end
  end

  @doc "The CPU time of a thread so far; nil when it has ended."
  @spec time_ns(time()) :: nil | non_neg_integer()
  def time_ns({:schedstat, file}) do
    with {:ok, text} <- :file.pread(file, 0, 64), {ns, _} <- Integer.parse(text) do
      ns
    else
      _ -> nil
    end
  end

  def time_ns({:stat, path}), do: with(%{ticks: ticks} <- stat(path), do: ticks * @tick_ns)
end
