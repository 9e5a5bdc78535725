defmodule Tame.RequestScenarios do
  @moduledoc "What a host asks of the VM, about processes that do not run and with terms that are large."

  alias Tame.Test.ControlFrames

  @group :requests
  @rounds 10

  @doc """
  A process in a NIF that holds its scheduler, with a signal before it: what is answered at once, whether the NIF still ran then,
  and what comes of the question who it is; of a process of the system, the same.
  """
  def held do
    {:ok, _} = Application.ensure_all_started(:tame)
    # While a NIF holds a scheduler no code is loaded.
    for module <- [
          :tame_host_requests,
          :tame_given,
          :tame_ring,
          :tame_ring_nif,
          :tame_unread,
          :tame_spin,
          Process,
          Map
        ],
        do: {:module, ^module} = Code.ensure_loaded(module)

    :ok = :tame_spin.spin_inline(10)
    # On schedulers of their own: one that a NIF holds runs nobody else.
    parent = self()
    :erlang.spawn_opt(fn -> send(parent, {:seen, asks()}) end, [{:scheduler, 1}, :link])
    receive do: ({:seen, seen} -> seen)
  end

  defp asks do
    parent = self()

    held =
      :erlang.spawn_opt(
        fn ->
          Process.register(self(), :held_process)
          # As a shell's or a test's.
          Process.group_leader(self(), parent)
          send(parent, :begun)
          :tame_spin.spin_inline(300_000)
          send(parent, :ended)
          receive do: (:stop -> :ok)
        end,
        [{:scheduler, 2}]
      )

    receive do: (:begun -> :ok)
    # Its answer waits for the end of the NIF, and what comes after it too.
    spawn(fn -> Process.info(held, :message_queue_len) end)
    :ok = :tame_given.note(@group, held)
    {[{:answer, 1, alive}], requests} = answer(1, {:alive, held}, requests())
    {[{:answer, 2, ref}], requests} = answer(2, {:monitor, 5, held}, requests)
    :ok = :tame_given.prune(@group)
    :ok = :tame_given.forget(@group)
    {[], requests} = answer(3, {:whereis, "held_process"}, requests)
    held_then = receive(do: (:ended -> false), after: (0 -> true))
    {3, found, requests} = answered(requests)
    {[], requests} = answer(4, {:whereis, "init"}, requests)
    {4, system, _} = answered(requests)

    %{
      at_once: [alive, is_reference(ref), :pruned],
      held_then: held_then,
      found: {:found, found == held and :tame_given.is_given(@group, held)},
      system: {:found, is_pid(system)}
    }
  end

  defp requests, do: :tame_host_requests.new(%{group: @group, options: %{max_atoms: 1}})
  defp answer(id, query, requests), do: :tame_host_requests.answer(id, query, :none, requests)

  defp answered(requests) do
    receive do
      {:tame_private, ref, private?} -> :tame_host_requests.answered(ref, private?, requests)
    after
      20_000 -> :none
    end
  end

  @doc """
  Large things that a host may have the VM do: by name the milliseconds of the longest slice on a normal scheduler, and those
  of all on dirty ones. On a busy machine a slice may lose its core: each is done again, for some rounds, until the longest
  slice is less than a part of that size of the others.
  """
  def large(part) do
    {:ok, _} = Application.ensure_all_started(:tame)
    list = Enum.to_list(1..4_000_000)
    map = Map.new(1..1_000_000, &{&1, &1})
    frame = ControlFrames.framed({:send, self(), map, []})
    up = :tame_control.long(:tame_control.new())

    send_list = fn ->
      receiver = spawn_until_end_of(self())
      fn -> :tame_ring.send(receiver, list, 64_000_000) end
    end

    feed_frame = fn -> fn -> {:ok, [_], _} = :tame_control.feed(frame, up) end end

    for {name, prepare} <- [message: send_list, frame: feed_frame] do
      {normal_ns, dirty_ns} = slices(prepare, part, @rounds)
      {name, normal_ns / 1.0e6, dirty_ns / 1.0e6}
    end
  end

  defp spawn_until_end_of(pid) do
    spawn(fn ->
      monitor = Process.monitor(pid)
      receive do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok)
    end)
  end

  defp slices(prepare, part, rounds) do
    task =
      Task.async(fn ->
        fun = prepare.()
        {:ok, watch} = :tame_slices.start(self())
        fun.()
        :tame_slices.stop(watch)
      end)

    %{normal: %{longest_ns: normal_ns}, dirty: %{total_ns: dirty_ns}} = Task.await(task, 600_000)

    if dirty_ns > part * normal_ns or rounds == 1,
      do: {normal_ns, dirty_ns},
      else: slices(prepare, part, rounds - 1)
  end
end
