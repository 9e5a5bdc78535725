defmodule Tame.DriverProbe do
  @moduledoc """
  A port driver on `tame/driver.h` that does what it is told, and counts in a file what it was called for.
  `natives/driver_probe_drv.c` has the C side.
  """

  alias Tame.{Await, JobProbe}

  @name ~c"driver_probe"

  # As `enum command` there.
  @commands ~w(work_cpu work_io work_port hold release job_cpu job_port again fail_here fail_outside
               fail_raw pipe post chain timer waiting spin)a
            |> Enum.with_index(1)
            |> Map.new()

  @fields ~w(starts stops begun ended done dropped pieces broken flushes inits finishes release)a

  @doc "Builds it; see `Tame.JobProbe.build/3`."
  def build(folder), do: JobProbe.build(folder, "driver_probe")

  @doc "Loads it from the folder that `TAME_DRIVER_FOLDER` names."
  def load, do: :erl_ddll.load(folder(), @name)

  def name, do: @name
  def folder, do: to_charlist(System.fetch_env!("TAME_DRIVER_FOLDER"))

  @doc "A port, with options for the driver: `stubborn`, its flush wakes nothing; `polite`, what is held looks."
  def open(options \\ "") do
    Port.open({:spawn_driver, @name ++ ~c" " ++ to_charlist(options)}, [:binary])
  end

  @doc "A command. `:ok`, or what control returned, or `:refused` where the port does not take it, or is none."
  def ask(port, command, n \\ 0, us \\ 0) do
    case :erlang.port_control(port, @commands[command], <<n::32, us::32>>) do
      [] -> :ok
      value -> value
    end
  rescue
    ArgumentError -> :refused
  end

  @doc "The next number that the port sends, an error that it replies, its exit, or `:nothing`."
  def answer(port, ms \\ 10_000) do
    receive do
      {^port, {:data, <<n::32>>}} -> n
      {^port, {:data, bytes}} -> bytes
      {^port, {:error, reason}} -> {:error, reason}
      {:EXIT, ^port, reason} -> {:exit, reason}
    after
      ms -> :nothing
    end
  end

  @doc "Makes the file of counters, all 0."
  def new_counters(path), do: File.write!(path, :binary.copy(<<0>>, 8 * length(@fields)))

  def counters(path \\ System.fetch_env!("TAME_DRIVER_COUNTERS")) do
    @fields |> Enum.zip(for <<n::native-64 <- File.read!(path)>>, do: n) |> Map.new()
  end

  @doc "Lets everything end that any port holds, or no more."
  def release_all(value \\ 1, path \\ System.fetch_env!("TAME_DRIVER_COUNTERS")) do
    {:ok, file} = :file.open(path, [:read, :write, :raw, :binary])
    :ok = :file.pwrite(file, 8 * (length(@fields) - 1), <<value::native-64>>)
    :ok = :file.close(file)
  end

  @doc "The counters, once all ports are stopped and nothing that was scheduled is left; or as they are after 10 s."
  def settled(path \\ System.fetch_env!("TAME_DRIVER_COUNTERS")) do
    Await.until(
      fn ->
        now = counters(path)
        now.starts == now.stops and now.pieces == 0 and now.begun == now.ended
      end,
      10_000
    )

    counters(path)
  end
end
