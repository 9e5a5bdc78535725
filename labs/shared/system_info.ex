defmodule Tame.SystemInfo do
  @moduledoc """
  What a report was measured on: the machine block that every report starts with.
  """

  alias Tame.{OtherLoad, Warning}

  @typedoc "Facts in the order in which they are shown."
  @type t :: keyword()

  @labels [
    tame: "tame",
    command: "command",
    otp: "Erlang/OTP",
    erts: "ERTS",
    elixir: "Elixir",
    flavor: "emulator",
    build_type: "emulator build",
    schedulers: "schedulers",
    dirty_cpu_schedulers: "dirty CPU schedulers",
    dirty_io_schedulers: "dirty I/O schedulers",
    async_threads: "async threads",
    busy_wait: "busy wait",
    clock: "clock",
    clock_step_ns: "clock step",
    os: "OS",
    kernel: "kernel",
    cpu: "CPU",
    cores: "cores",
    cpu_quota: "CPU quota",
    memory_mb: "memory",
    others_percent: "CPU that others took"
  ]

  # The share of all CPU time that a quiet machine's own services do not take.
  @visible_percent 10

  # What erl(1) documents for +sbwt, +sbwtdcpu and +sbwtdio when none is given.
  @busy_wait_defaults [sbwt: "medium", sbwtdcpu: "short", sbwtdio: "short"]

  @doc "Reads the facts. `command` is the command line that made the report."
  @spec collect(String.t()) :: t()
  def collect(command) do
    {_, clock} = List.keyfind(:erlang.system_info(:os_monotonic_time_source), :function, 0)

    [
      tame: to_string(:tame.version()),
      command: command,
      otp: to_string(:erlang.system_info(:otp_release)),
      erts: to_string(:erlang.system_info(:version)),
      elixir: System.version(),
      flavor: to_string(:erlang.system_info(:emu_flavor)),
      build_type: to_string(:erlang.system_info(:build_type)),
      schedulers: :erlang.system_info(:schedulers_online),
      dirty_cpu_schedulers: :erlang.system_info(:dirty_cpu_schedulers_online),
      dirty_io_schedulers: :erlang.system_info(:dirty_io_schedulers),
      async_threads: :erlang.system_info(:thread_pool_size),
      busy_wait: busy_wait(File.read("/proc/self/cmdline")),
      clock: to_string(clock),
      clock_step_ns: clock_step_ns(),
      os: os(File.read("/etc/os-release")),
      kernel: to_string(:erlang.system_info(:system_architecture)) <> " " <> kernel(),
      cpu: cpu(File.read("/proc/cpuinfo")),
      cores: :erlang.system_info(:logical_processors_available) |> known(),
      cpu_quota: cpu_quota(&File.read/1),
      memory_mb: memory_mb(File.read("/proc/meminfo"))
    ]
  end

  @doc "The facts of a run that is over: with what others took of the machine since `load` was read."
  @spec ended(t(), OtherLoad.reading()) :: t()
  def ended(system, load), do: system ++ [others_percent: OtherLoad.percent(load)]

  @doc """
  The facts in the order in which they are shown, from a map of them, as JSON has them.

      iex> Tame.SystemInfo.from_map(%{cores: 2, otp: "25", peer_flags: "none"})
      [otp: "25", cores: 2, peer_flags: "none"]
  """
  @spec from_map(map()) :: t()
  def from_map(facts) do
    {known, other} = Map.split(facts, Keyword.keys(@labels))
    order = for {key, _} <- @labels, is_map_key(known, key), do: {key, known[key]}
    order ++ Enum.sort(Map.to_list(other))
  end

  @doc """
  What a figure was measured on, in a line: processor, system and versions.

      iex> Tame.SystemInfo.short(cpu: "AMD EPYC", cores: 2, os: "Debian 12", otp: "25", elixir: "1.14.0")
      "AMD EPYC, 2 cores, Debian 12, Erlang/OTP 25, Elixir 1.14.0"
  """
  @spec short(t()) :: String.t()
  def short(system) do
    [
      system[:cpu],
      system[:cores] && "#{system[:cores]} cores",
      system[:os],
      system[:otp] && "Erlang/OTP #{system[:otp]}",
      system[:elixir] && "Elixir #{system[:elixir]}"
    ]
    |> Enum.reject(&is_nil/1)
    |> Enum.join(", ")
  end

  @doc "The facts as `{label, text}`, for tables and the report's page."
  @spec lines(t()) :: [{String.t(), String.t()}]
  def lines(system) do
    for {key, value} <- system, do: {label(key), show(key, value)}
  end

  @doc "The facts as lines of text, the labels padded."
  @spec text(t()) :: iodata()
  def text(system) do
    lines = lines(system)
    width = lines |> Enum.map(fn {label, _} -> String.length(label) end) |> Enum.max()
    for {label, value} <- lines, do: [String.pad_trailing(label, width + 2), value, ?\n]
  end

  @doc "What a reader must know about this machine."
  @spec warnings(t()) :: [Warning.t()]
  def warnings(system) do
    others = system[:others_percent]
    quota = system[:cpu_quota]
    schedulers = system[:schedulers]

    Warning.select([
      {is_number(others) and others > @visible_percent, :machine_busy,
       fn ->
         "While this ran, others took #{others} % of all CPU time: processes that are not of this run, or other virtual " <>
           "machines. Compare its figures with each other, not with other runs."
       end},
      {system[:flavor] != "jit", :no_jit,
       fn ->
         "This emulator has no JIT (#{system[:flavor]}): calls cost more here than on most installations."
       end},
      {system[:build_type] != "opt", :not_optimised,
       fn ->
         "This is a #{system[:build_type]} emulator: its figures say nothing about a normal one. " <>
           "Run with +emu_type opt."
       end},
      {is_number(quota) and quota < schedulers, :cpu_quota,
       fn ->
         "The container may use #{quota} CPUs but #{schedulers} schedulers run: busy waiting eats the " <>
           "quota. Start with +S #{max(trunc(quota), 1)} or +sbwt none."
       end},
      {system[:clock_step_ns] > 100, :clock_too_coarse,
       fn ->
         "The monotonic clock advances in steps of #{system[:clock_step_ns]} ns: shorter calls cannot be " <>
           "told apart."
       end}
    ])
  end

  # A saved report may have facts that this version does not know.
  defp label(key), do: if(is_atom(key), do: @labels[key]) || to_string(key)

  defp show(_key, nil), do: "unknown"
  defp show(:cpu_quota, cpus) when is_number(cpus), do: "#{cpus} CPUs"
  defp show(:others_percent, percent), do: "#{percent} %"
  defp show(:clock_step_ns, ns), do: "#{ns} ns"
  defp show(:memory_mb, mb), do: "#{mb} MB"
  defp show(_key, value), do: to_string(value)

  defp known(:unknown), do: nil
  defp known(value), do: value

  defp clock_step_ns do
    readings = for _ <- 1..1000, do: :erlang.monotonic_time(:nanosecond)
    readings |> Enum.zip_with(tl(readings), fn from, to -> to - from end) |> step_ns()
  end

  # Readings are scaled and rounded, so a difference is a multiple of the step give or take this.
  @rounding_ns 1

  @doc false
  # What the clock really advances by, which is often more than the 1 ns that the OS states: the
  # greatest step of which nearly all differences between readings are multiples. Up to three
  # everything is within 1 ns of a multiple, so that says nothing and counts as 1.
  def step_ns(differences) do
    largest = Enum.max(differences)
    # Few are different, and the steps to try are many.
    counts = Enum.frequencies(differences)

    fits? = fn step ->
      near = for {ns, count} <- counts, rem(ns + @rounding_ns, step) <= 2 * @rounding_ns, do: count

      Enum.sum(near) >= 0.95 * length(differences)
    end

    case Enum.find(min(largest, 10_000)..1//-1, fits?) do
      step when is_integer(step) and step > 3 -> step
      _ -> 1
    end
  end

  @doc false
  # The emulator's flags reach the process as -sbwt VALUE, before the "--" that ends them.
  def busy_wait({:ok, cmdline}) do
    flags = cmdline |> String.split(<<0>>) |> Enum.take_while(&(&1 != "--"))

    Enum.map_join(@busy_wait_defaults, ", ", fn {flag, default} ->
      case Enum.find_index(flags, &(&1 == "-#{flag}")) do
        nil -> "#{flag} #{default} (default)"
        at -> "#{flag} #{Enum.at(flags, at + 1)}"
      end
    end)
  end

  def busy_wait({:error, _}), do: nil

  defp os({:ok, text}) do
    case Regex.run(~r/^PRETTY_NAME="?([^"\n]*)/m, text) do
      [_, name] -> name
      nil -> nil
    end
  end

  defp os({:error, _}), do: nil

  defp kernel do
    {_, name} = :os.type()

    version =
      case :os.version() do
        {major, minor, release} -> "#{major}.#{minor}.#{release}"
        text -> to_string(text)
      end

    "#{name} #{version}"
  end

  defp cpu({:ok, text}) do
    case Regex.run(~r/^(?:model name|Model|Hardware)\s*:\s*(.+)$/m, text) do
      [_, name] -> name
      nil -> nil
    end
  end

  defp cpu({:error, _}), do: nil

  @doc false
  # CPUs that the control group may use, `:none` without a limit. cgroup v2 has "QUOTA PERIOD" in
  # cpu.max, v1 the two in files of their own; the tightest of the group and its parents counts.
  def cpu_quota(read) do
    with {:ok, text} <- read.("/proc/self/cgroup"),
         [_, path] <- Regex.run(~r/^0::(.*)$/m, text) do
      path
      |> Path.split()
      |> Enum.scan(&Path.join(&2, &1))
      |> Enum.map(&quota_v2(read.(Path.join("/sys/fs/cgroup" <> &1, "cpu.max"))))
      |> Enum.min(fn -> :none end)
    else
      _ -> quota_v1(read)
    end
  end

  # :none is an atom and so compares greater than any number.
  defp quota_v2({:ok, text}) do
    case String.split(text) do
      ["max" | _] -> :none
      [quota, period] -> cpus(quota, period)
      _ -> :none
    end
  end

  defp quota_v2({:error, _}), do: :none

  defp quota_v1(read) do
    with {:ok, quota} <- read.("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
         {:ok, period} <- read.("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
         false <- String.starts_with?(quota, "-") do
      cpus(String.trim(quota), String.trim(period))
    else
      _ -> :none
    end
  end

  defp cpus(quota, period) do
    Float.round(String.to_integer(quota) / String.to_integer(period), 2)
  end

  defp memory_mb({:ok, text}) do
    case Regex.run(~r/^MemTotal:\s*(\d+) kB/m, text) do
      [_, kb] -> div(String.to_integer(kb), 1024)
      nil -> nil
    end
  end

  defp memory_mb({:error, _}), do: nil
end
