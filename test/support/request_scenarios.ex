defmodule Tame.RequestScenarios do
  @moduledoc "What a host asks of the VM, about processes that do not run and with terms that are large."

  alias Tame.Test.ControlFrames

  @group :requests

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
  of all on dirty ones.
  """
  def large do
    {:ok, _} = Application.ensure_all_started(:tame)
    list = Enum.to_list(1..4_000_000)
    map = Map.new(1..1_000_000, &{&1, &1})
    frame = ControlFrames.framed({:send, self(), map, []})
    up = :tame_control.loaded(:tame_control.new())

    [
      slices(:message, fn ->
        receiver = spawn(fn -> receive do: (:stop -> :ok) end)
        fn -> :tame_ring.send(receiver, list, 64_000_000) end
      end),
      slices(:frame, fn -> fn -> {:ok, [_], _} = :tame_control.feed(frame, up) end end)
    ]
  end

  defp slices(name, prepare) do
    task =
      Task.async(fn ->
        fun = prepare.()
        {:ok, watch} = :tame_slices.start(self())
        fun.()
        :tame_slices.stop(watch)
      end)

    %{normal: normal, dirty: dirty} = Task.await(task, 60_000)
    {name, normal.longest_ns / 1.0e6, dirty.total_ns / 1.0e6}
  end
end
