defmodule Tame.DestructorScenarios do
  @moduledoc """
  A destructor that waits for a lock which a call has (`natives/destructor_nif.c`). In a VM of its own.
  """

  alias Tame.Await
  alias Tame.Test.CLibrary

  @source Path.expand("natives/destructor_nif.c", __DIR__)
  @functions [:make, :hold, :held, :open, :destroyed]

  @doc "A module of this name, isolated."
  def isolated(module, options \\ %{}) do
    {:ok, _} = Application.ensure_all_started(:tame)
    exports = Enum.map_join(@functions, ", ", &"#{&1}/0")
    bodies = for name <- @functions, do: "#{name}() -> erlang:nif_error(not_loaded).\n"

    _ =
      CLibrary.module!(module, @source, """
      -module(#{module}).
      -export([#{exports}]).
      -on_load(start/0).
      start() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
      #{bodies}
      """)

    :ok = :tame.isolate(module, options)
    module
  end

  @doc """
  A call has the lock, and `n` times something is let go of that wants it; each time another process calls. What these
  calls answer, what the one that waits does then, and how much was destroyed in the end.
  """
  def waits_for_call(options, n) do
    module = isolated(:destructors_wait, options)
    for _ <- 1..n, do: make_and_let_go(module, fn -> :ok end)
    true = Await.until(fn -> module.destroyed() == n end)

    holder = Task.async(fn -> module.hold() end)
    true = Await.until(fn -> module.held() == 1 end)

    answers =
      for _ <- 1..n do
        make_and_let_go(module, fn ->
          task = Task.async(fn -> module.held() end)
          Task.yield(task, 5000) || Task.shutdown(task, :brutal_kill)
        end)
      end

    opened = Task.async(fn -> module.open() end)
    opened = Task.yield(opened, 5000) || Task.shutdown(opened, :brutal_kill)
    {answers, opened, Task.yield(holder, 5000), Await.until(fn -> module.destroyed() == 2 * n end)}
  end

  @doc "How often, of `n` times, the call after something was let go of did not find it destroyed, beside another caller."
  def destroyed_before(n) do
    module = isolated(:destructors_before)
    beside = spawn_link(fn -> Stream.repeatedly(fn -> module.held() end) |> Stream.run() end)

    late =
      Enum.count(1..n, fn i ->
        make_and_let_go(module, fn -> Await.until(fn -> resources(module) == 0 end) end)
        module.destroyed() != i
      end)

    Process.unlink(beside)
    Process.exit(beside, :kill)
    late
  end

  # That the VM has.
  defp resources(module), do: hd(:tame.info()[module].hosts).ring.resources

  # What the function returns, when a thing that a process had is gone with it.
  defp make_and_let_go(module, then) do
    {pid, monitor} = spawn_monitor(fn -> exit({:made, is_reference(module.make())}) end)

    receive do
      {:DOWN, ^monitor, :process, ^pid, {:made, true}} -> then.()
    end
  end
end
