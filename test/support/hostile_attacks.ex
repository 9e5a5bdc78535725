defmodule Tame.Test.HostileAttacks do
  @moduledoc false
  # What a host gone bad does on its control port: attacks by name, each a script for hostile_host.c.
  #
  # They are written in the VM that is attacked, because they name its processes and ports. The context:
  # protocol, its number; vm, the VM's OS process; decoy, an OS process that is none of tame's; witness, a
  # process that the library was never given; busy, a port whose program reads nothing.

  import Tame.Test.HostileHost

  alias Tame.Test.ControlFrames

  # Names beyond the atom table's default size.
  @names 1_100_000
  @per_frame 1000

  @doc false
  def names, do: Keyword.keys(attacks())

  # {script, how often its host is to be started}: each start plays the next part of the script.
  def script(name, context) do
    case attacks()[name].(context) do
      {:parts, parts} -> {one_of(parts), length(parts)}
      steps -> {one_of([steps]), 1}
    end
  end

  # Messages without end to a process that the library is given.
  def flood(pid) do
    protocol = protocol()
    info = %{ControlFrames.loaded_info(protocol) | sends: true}
    up = [until_load(protocol), serve(), read_and_answer()]
    loaded = frame({:loaded, ControlFrames.functions(), info})
    [up, loaded, again_and_again(repeat(1000, frame({:send, pid, :flood, []})))]
  end

  # Questions for leases without end, each some when those before are answered: it would end for asking faster.
  def leases do
    protocol = protocol()
    ask = for id <- 1..8, do: frame({:query, id, :leases})
    answer = :erlang.term_to_binary({:answer, 8, []})
    answered = wait_for(binary_part(answer, 0, byte_size(answer) - 1))
    [until_load(protocol), serve(), loaded(protocol), again_and_again([ask, answered])]
  end

  # A host that is good for so long, then says what it must not, one thing after the other from start to
  # start, and ends.
  def every(ms, protocol) do
    wrong = Enum.map(ControlFrames.wrong(protocol), &frame/1)
    no_terms = for bytes <- ControlFrames.no_terms(), byte_size(bytes) < 1_000_000, do: etf(bytes)
    parts = for part <- wrong ++ no_terms, do: [up(protocol), pause(ms), part, bad()]
    one_of(parts)
  end

  defp attacks do
    [
      # Shapes, sizes and counts, each kind, in each state.
      before_hello: &{:parts, for(frame <- wrong_frames(&1), do: [frame, bad()])},
      right_before_hello: &{:parts, for(frame <- right_frames(&1), do: [frame, bad()])},
      after_hello:
        &{:parts, for(frame <- wrong_frames(&1), do: [hello(&1.protocol), frame, bad()])},
      instead_of_loaded:
        &{:parts, for(frame <- wrong_frames(&1), do: [until_load(&1.protocol), frame, bad()])},
      while_up: &{:parts, for(frame <- wrong_frames(&1), do: [up(&1.protocol), frame, bad()])},
      no_terms_while_up:
        &{:parts, for(bytes <- ControlFrames.no_terms(), do: [up(&1.protocol), etf(bytes), bad()])},
      again_while_up:
        &{:parts, for(frame <- right_frames(&1), do: [up(&1.protocol), frame, frame, bad()])},
      other_libraries: &{:parts, other_libraries(&1.protocol)},
      out_of_order: &{:parts, out_of_order(&1.protocol)},
      cut: &{:parts, cut(&1.protocol)},
      after_refused: &{:parts, for(frame <- right_frames(&1), do: after_refused(&1, frame))},
      mutated: &{:parts, for(seed <- 1..150, do: mutated(seed, &1.protocol))},
      # One thing, much of it.
      loaded_many_names: &loaded_many_names/1,
      new_atoms_without_end: &new_atoms/1,
      monitors_without_end: &monitors/1,
      demonitors_of_others: &demonitors/1,
      valid_queries_without_end: &[up(&1.protocol), again_and_again(queries(&1))],
      asks_and_never_reads: &[deaf(&1.protocol), again_and_again(queries(&1))],
      stops_reading_before_load: &[hello(&1.protocol), again_and_again(queries(&1))],
      logs_without_end: &[up(&1.protocol), again_and_again(drops(&1))],
      pongs_without_end: &[up(&1.protocol), again_and_again(repeat(100, frame({:pong, 1})))],
      sends_without_end: &[up(&1.protocol), again_and_again(sends(&1))],
      announces_4_gib: &[up(&1.protocol), announced(0xFFFF_FFFF)],
      announces_4_gib_at_once: fn _ -> announced(0xFFFF_FFFF) end,
      announces_100_mib: &[up(&1.protocol), announced(100 * 1_048_576)],
      # Words that are believed.
      pid_of_vm: &stranger(&1, &1.vm),
      pid_of_decoy: &stranger(&1, &1.decoy),
      pid_of_all: &stranger(&1, -1),
      pid_of_init: &stranger(&1, 1),
      stops_init: &[up(&1.protocol), send_to(:init, {:stop, :stop}), pause(500)],
      ends_ours: &[up(&1.protocol), for(name <- ours(), do: exits(name)), pause(500)],
      restores: &[up(&1.protocol), gen_call(:tame_isolation, {:restore, :tame_exor}), pause(500)],
      writes_to_others: &[up(&1.protocol), messages_to_witness(&1), pause(500)],
      writes_to_busy_port: &[up(&1.protocol), repeat(50, port_command(&1.busy)), pause(2000)],
      ends_itself_in_words: &{:parts, said_ended(&1.protocol)},
      # What an OS process may do.
      never_says_hello: fn _ -> read_only() end,
      never_answers_pings: &[until_load(&1.protocol), serve(), read_only(), loaded(&1.protocol)],
      stopped: &[up(&1.protocol), pause(300), signal(19)],
      stopped_at_once: fn _ -> signal(19) end,
      closes_descriptors:
        &{:parts,
         for(
           fds <- [[3], [4], [3, 4]],
           do: [up(&1.protocol), Enum.map(fds, fn fd -> close(fd) end)]
         )},
      leaves_children:
        &{:parts,
         for(
           last <- [exit_with(0), exit_with(3), signal(9), bad()],
           do: [up(&1.protocol), leave_children(10), last]
         )},
      dies:
        &{:parts,
         for(
           start <- [[], hello(&1.protocol), until_load(&1.protocol), up(&1.protocol)],
           last <- [exit_with(0), exit_with(1), signal(11)],
           do: [start, last]
         )}
    ]
  end

  # What no VM takes, so that the host's run is over even where the frame before it was taken.
  defp bad, do: [pause(5), etf("not a term"), pause(5000)]

  defp wrong_frames(%{protocol: protocol}), do: Enum.map(ControlFrames.wrong(protocol), &frame/1)
  defp right_frames(%{protocol: protocol}), do: Enum.map(ControlFrames.right(protocol), &frame/1)

  defp after_refused(%{protocol: protocol}, frame) do
    refused = frame({:refused, :no_such_file, %{}, "there is none"})
    [until_load(protocol), refused, frame, loaded(protocol), bad()]
  end

  defp out_of_order(protocol) do
    loaded = loaded(protocol)

    [
      [loaded, hello(protocol), wait_for("ring"), ring(), bad()],
      [hello(protocol), loaded, ring(), bad()],
      [hello(protocol), wait_for("ring"), loaded, serve_late(), bad()],
      [hello(protocol), wait_for("ring"), ring(), ring(), wait_for("load"), loaded, bad()],
      [until_load(protocol), loaded, loaded, bad()],
      [until_load(protocol), hello(protocol), loaded, bad()],
      [up(protocol), ring(), bad()],
      [up(protocol), hello(protocol), wait_for("ring"), ring(), bad()],
      [hello(protocol), hello(protocol), wait_for("ring"), ring(), bad()]
    ]
  end

  # Of a library that it was not to load, or has loaded already.
  defp other_libraries(protocol) do
    info = ControlFrames.loaded_info(protocol)
    other = frame({:loaded, ControlFrames.functions(), %{info | library: 5}})
    refused = frame({:refused, :load_returned, %{value: 1}, "no"})

    [
      [until_load(protocol), other, bad()],
      [until_load(protocol), frame({:unloaded, 0}), bad()],
      [until_load(protocol), serve(), loaded(protocol), loaded(protocol), bad()]
      | for(
          wrong <- [other, loaded(protocol), refused, frame({:unloaded, 0})],
          do: [up(protocol), wrong, bad()]
        )
    ]
  end

  defp serve_late, do: [ring(), serve()]

  # The frame of loaded, cut at each twentieth byte, then an end of some kind.
  defp cut(protocol) do
    frame =
      ControlFrames.framed(
        {:loaded, ControlFrames.functions(), ControlFrames.loaded_info(protocol)}
      )

    for at <- 0..(byte_size(frame) - 1)//20,
        last <- [exit_with(0), [pause(100), signal(9)], close(4)] do
      [until_load(protocol), bytes(binary_part(frame, 0, at)), last]
    end
  end

  defp mutated(seed, protocol) do
    start = Enum.at([[], hello(protocol), until_load(protocol), up(protocol)], rem(seed, 4))
    [start, bytes(ControlFrames.mutated(seed, 50, ControlFrames.corpus(protocol))), bad()]
  end

  defp loaded_many_names(%{protocol: protocol}) do
    names = for n <- 1..@names, do: {"hostile_name_#{n}", 1, 0}
    [until_load(protocol), serve(), frame({:loaded, names, ControlFrames.loaded_info(protocol)})]
  end

  defp new_atoms(%{protocol: protocol}) do
    frames =
      for first <- 1..@names//@per_frame do
        names = for n <- first..(first + @per_frame - 1), do: "hostile_atom_#{n}"
        ControlFrames.framed({:query, first, {:new_atoms, names}})
      end

    [up(protocol), bytes(frames), pause(5000)]
  end

  defp monitors(%{protocol: protocol, witness: witness}) do
    [
      up(protocol),
      again_and_again(for(n <- 1..1000, do: frame({:query, n, {:monitor, n, witness}})))
    ]
  end

  defp demonitors(%{protocol: protocol}) do
    ids = for n <- -1000..1000, do: frame({:query, 1, {:demonitor, n}})

    [
      up(protocol),
      ids,
      for(_ <- 1..100, do: frame({:query, 1, {:demonitor, make_ref()}})),
      pause(500)
    ]
  end

  defp queries(%{witness: witness}) do
    for what <- [
          :sync,
          :make_ref,
          {:existing_atom, "ok"},
          {:alive, witness},
          :leases,
          {:phash2, [1]}
        ] do
      repeat(10, frame({:query, 1, what}))
    end
  end

  # A message to a process that the library was not given: dropped, which is logged.
  defp drops(%{witness: witness}),
    do: repeat(100, frame({:send, witness, String.duplicate("x", 1000), []}))

  defp sends(%{witness: witness}), do: repeat(100, frame({:send, witness, :flood, []}))

  # A frame that never ends.
  defp announced(size),
    do: [bytes(<<size::32, 131>>), again_and_again(bytes(:binary.copy(<<109>>, 65_536)))]

  # It says that it is another OS process, and deserves death.
  defp stranger(%{protocol: protocol}, os_pid) do
    [frame({:hello, protocol, os_pid, %{workers: 2, nif_version: {2, 16}}}), pause(100), bad()]
  end

  defp send_to(name, message), do: frame({:send, Process.whereis(name), message, []})

  defp ours do
    for name <- [:tame_sup, :tame_isolation, :tame_job_rates, :application_controller, :kernel_sup],
        Process.whereis(name) != nil,
        do: name
  end

  # As a parent would end a gen_server or supervisor.
  defp exits(name) do
    {:dictionary, dictionary} = name |> Process.whereis() |> Process.info(:dictionary)
    parents = for parent <- Keyword.get(dictionary, :"$ancestors", []), do: pid(parent)

    for parent <- [Process.whereis(:init) | parents] do
      [
        send_to(name, {:EXIT, parent, :shutdown}),
        send_to(name, {:system, {self(), make_ref()}, {:terminate, :shutdown}})
      ]
    end
  end

  defp pid(name) when is_atom(name), do: Process.whereis(name)
  defp pid(pid), do: pid

  defp gen_call(name, request), do: send_to(name, {:"$gen_call", {self(), make_ref()}, request})

  defp messages_to_witness(%{witness: witness}) do
    for message <- [:x, {:EXIT, self(), :kill}, {:ok, [1]}],
        do: frame({:send, witness, message, []})
  end

  defp port_command(port) do
    frame({:query, 1, {:port_command, port, :binary.copy("x", 100_000)}})
  end

  defp said_ended(protocol) do
    ended = {:ended, 11, 4096, "echo_nif", 1, "#0 nowhere\n", "last words", :memory}

    for start <- [[], hello(protocol), until_load(protocol), up(protocol)],
        last <- [pause(1000), frame(ended), bad()],
        do: [start, frame(ended), last]
  end
end
