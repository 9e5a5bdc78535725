defmodule Tame.WatchScenarios do
  @moduledoc "Processes that native code watches, asked who monitors them; in a throw-away emulator, which may not survive it."

  alias Tame.{FdProbe, JobLibrary}
  alias Tame.Test.RingHost

  @doc "Asks for `ms`, of a process that calls jobs, one after another. Returns how often."
  def ask_of_caller(placement, ms) do
    caller = spawn_link(fn -> call_for_ever(placement) end)
    asked = ask_until(caller, now_ms() + ms, 0)
    true = Process.alive?(caller)
    asked
  end

  defp call_for_ever(placement) do
    job(placement)
    call_for_ever(placement)
  end

  defp job(placement), do: JobLibrary.call(:count, placement, [1, 10, :result])

  @doc "Asks of rings' owners, which drop their rings meanwhile, `rings` times. Returns how often."
  def ask_of_ring_owner(rings) do
    Enum.sum(for _ <- 1..rings, do: ask_until(owner(RingHost.start()), now_ms() + 250, 0))
  end

  @doc "Asks for `ms`, of a process that opens descriptors, and drops them or closes them. Returns how often."
  def ask_of_descriptors_owner(ms) do
    owner = spawn_link(fn -> open_for_ever(1) end)
    ask_until(owner, now_ms() + ms, 0)
  end

  defp open_for_ever(n) do
    {fd, _} = FdProbe.open(:eventfd)
    ref = make_ref()
    :wait = FdProbe.read(fd, ref)
    FdProbe.close(fd, ref)
    receive do: ({:tame_fd, ^ref, :closed} -> :ok)
    {_dropped, _} = FdProbe.open(:null)
    if rem(n, 10) == 0, do: :erlang.garbage_collect()
    open_for_ever(n + 1)
  end

  # It lives on without its ring.
  defp owner(host) do
    spawn_link(fn ->
      {:ok, _} = :tame_ring.open(host.os_pid, host.fd, %{})
      Process.sleep(50)
      :erlang.garbage_collect()
      Process.sleep(:infinity)
    end)
  end

  # What the answers refer to is collected now and then.
  defp ask_until(pid, until_ms, asked) do
    {:monitored_by, _} = Process.info(pid, :monitored_by)
    if rem(asked, 10) == 0, do: :erlang.garbage_collect()
    if now_ms() < until_ms, do: ask_until(pid, until_ms, asked + 1), else: asked
  end

  @doc "How many resources monitor a process: before its first job, after it, and after `jobs`."
  def monitors(jobs) do
    for jobs <- [0, 1, jobs - 1] do
      for _ <- 1..jobs//1, do: job(:pool)
      {:monitored_by, by} = Process.info(self(), :monitored_by)
      Enum.count(by, &is_reference/1)
    end
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
