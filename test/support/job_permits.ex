defmodule Tame.JobPermits do
  @moduledoc """
  Two libraries whose jobs sleep in their pools, a millisecond in each step (`natives/job_permits_nif.c`). How many of
  both sleep at once is counted in a file.
  """

  alias Tame.{Await, JobProbe}
  alias __MODULE__.{First, Second}

  for name <- [First, Second] do
    defmodule name do
      @moduledoc false
      use Tame.Job

      @on_load :load

      defjob(nap(steps))
      defjob(blocked(steps))
      # Two at once.
      defjob(apart(steps))

      def load do
        case :os.getenv(~c"TAME_PERMITS_FOLDER") do
          false -> :ok
          folder -> :erlang.load_nif(Path.join(folder, List.last(Module.split(__MODULE__))), 0)
        end
      end
    end
  end

  @doc "Both libraries, into a folder."
  def build(folder) do
    for {flags, name} <- [{[], "First"}, {["-DSECOND"], "Second"}] do
      folder
      |> JobProbe.build("job_permits", flags)
      |> File.rename!(Path.join(folder, name <> ".so"))
    end
  end

  @doc "A VM's environment with the libraries there, and counters that are 0."
  def env(folder) do
    counters = Path.join(folder, "counters")
    File.write!(counters, <<0::192>>)

    [
      {~c"TAME_PERMITS_FOLDER", to_charlist(folder)},
      {~c"TAME_PERMITS_COUNTERS", to_charlist(counters)}
    ]
  end

  # ---- in a VM of its own --------------------------------------------------------------------------

  @doc "The most steps that ran at once, of `calls` calls of each library with `steps` steps each."
  def most(calls, steps) do
    for({:ok, :rested} <- naps(calls, steps), do: :rested) |> length() == 2 * calls ||
      raise("one failed")

    {_working, most, _} = counters()
    most
  end

  @doc "The same without what the application shares: each library is told of the schedulers before it asks."
  def most_apart(calls, steps) do
    # It is asked for again after a second.
    for library <- [First, Second],
        do: :ok = library."$tame"(:erlang.system_info(:schedulers_online), :online, [])

    most(calls, steps)
  end

  @doc "Steps of one library block both cores; whether the other one's calls end meanwhile."
  def beside_blocked do
    blocked = for _ <- 1..2, do: Task.async(fn -> First.blocked(1) end)
    true = Await.until(fn -> match?({2, _, _}, counters()) end)
    other = for _ <- 1..2, do: Task.async(fn -> Second.nap(20) end)
    ended = Task.await_many(other, 600_000)
    release()
    {ended, Task.await_many(blocked, 600_000)}
  end

  @doc "What a call says beside as many as may have a thread of their own, and what it says when those have ended."
  def too_many_threads do
    two = for _ <- 1..2, do: Task.async(fn -> First.apart(1) end)
    true = Await.until(fn -> match?({2, _, _}, counters()) end)
    {:error, refused} = caught(fn -> First.apart(1) end)
    release()
    [:rested, :rested] = Task.await_many(two, 600_000)
    # The thread of a call that has answered ends a moment later.
    true = Await.until(fn -> caught(fn -> First.apart(1) end) == :rested end)
    refused
  end

  defp caught(fun) do
    fun.()
  rescue
    error in ErlangError -> {:error, error.original}
  end

  @doc "The module that has the permits is loaded anew, and goes, while both libraries use them."
  def owner_goes do
    naps = Task.async(fn -> naps(6, 100) end)
    true = Await.until(fn -> match?({2, _, _}, counters()) end)

    for _ <- 1..3 do
      {:module, :tame_permits} = :code.load_file(:tame_permits)
      true = :code.soft_purge(:tame_permits)
    end

    after_upgrade = :tame_permits.shared()
    true = :code.delete(:tame_permits)
    true = :code.soft_purge(:tame_permits)
    rested = Task.await(naps, 600_000)
    {length(after_upgrade), Enum.frequencies(rested), elem(counters(), 1)}
  end

  defp naps(calls, steps) do
    for(library <- [First, Second], _ <- 1..calls, do: library)
    |> Task.async_stream(& &1.nap(steps), max_concurrency: 2 * calls, timeout: 60_000)
    |> Enum.to_list()
  end

  defp counters do
    <<working::native-64, most::native-64, release::native-64>> = File.read!(path())
    {working, most, release}
  end

  defp release do
    {:ok, file} = :file.open(path(), [:read, :write, :raw, :binary])
    :ok = :file.pwrite(file, 16, <<1::native-64>>)
    :ok = :file.close(file)
  end

  defp path, do: System.fetch_env!("TAME_PERMITS_COUNTERS")
end
