defmodule Tame.JobSlicesScenarios do
  @moduledoc "Calls whose slices are looked at, inside a throw-away emulator."

  alias Tame.{Await, JobLibrary, JobResults}

  @doc "The longest slice of a dear call after cheap ones, and how long it took, in us."
  def dearer(placement) do
    for _ <- 1..200, do: :ok = JobLibrary.call(:cost, placement, [1_000, 10])
    slices(fn -> JobLibrary.call(:cost, placement, [3000, 100_000]) end)
  end

  def built(length) do
    slices(fn -> {[_ | _], _} = JobLibrary.count_yielding(0, length, :ok) end)
  end

  @doc "Of a process that does nothing but read a stream."
  def read(parts) do
    slices(fn -> JobLibrary.call(:parts, :yielding, [1, parts]) |> Stream.run() end)
  end

  def unaligned(size) do
    <<_::3, unaligned::bitstring>> = <<1::3, :binary.copy(<<7>>, size)::binary>>
    slices(fn -> ^size = byte_size(:tame_exor.exor_yielding(unaligned, 1)) end)
  end

  @doc """
  The most memory of binaries, in parts of the binary's own, while such a binary is copied to begin with a byte; and
  how much of it is left when the process that copies it is killed on the way.
  """
  def unaligned_memory(size) do
    <<_::3, unaligned::bitstring>> = <<1::3, :binary.copy(<<7>>, size)::binary>>
    :erlang.garbage_collect()
    before = :erlang.memory(:binary)
    part = fn -> (:erlang.memory(:binary) - before) / size end
    {pid, monitor} = spawn_monitor(fn -> ^size = byte_size(:tame_iovec.aligned(unaligned)) end)
    most = most(part, monitor, 0.0)
    false = Process.alive?(pid)
    true = Await.until(fn -> part.() < 0.1 end)

    {pid, monitor} = spawn_monitor(fn -> :tame_iovec.aligned(unaligned) end)
    true = Await.until(fn -> part.() > 0.2 end)
    Process.exit(pid, :kill)
    killed = receive(do: ({:DOWN, ^monitor, _, _, reason} -> reason))
    {most, killed, Await.until(fn -> part.() < 0.1 end)}
  end

  defp most(part, monitor, most) do
    receive do
      {:DOWN, ^monitor, _, _, :normal} -> most
    after
      0 -> most(part, monitor, max(most, part.()))
    end
  end

  @doc "As unaligned/1, for iodata: a binary, or a list of them."
  def unaligned_iodata(size, form) do
    <<_::3, unaligned::bitstring>> = <<1::3, :binary.copy(<<7>>, size)::binary>>
    data = if form == :list, do: [unaligned, "and", unaligned], else: unaligned
    slices(fn -> true = byte_size(JobLibrary.call(:flip, :yielding, [data])) >= size end)
  end

  def unaligned_iodata_is_right do
    bytes = :crypto.strong_rand_bytes(300_000)

    for size <- [0, 1, 64, 65, 66, 65_535, 65_536, 65_537, 131_072, 300_000] do
      part = binary_part(bytes, 0, size)
      <<_::3, unaligned::bitstring>> = <<1::3, part::binary>>
      flipped = for <<byte <- part>>, into: <<>>, do: <<255 - byte>>

      for {data, expected} <- [
            {unaligned, flipped},
            {[unaligned, part, unaligned], flipped <> flipped <> flipped},
            {[part, unaligned], flipped <> flipped}
          ],
          do: JobLibrary.call(:flip, :yielding, [data]) == expected
    end
    |> List.flatten()
    |> Enum.all?()
  end

  @doc "What calls answer whose iodata claims sizes that its binaries do not have."
  def claimed_sizes do
    <<_::3, unaligned::binary-size(100), _::5>> = :crypto.strong_rand_bytes(101)

    for size <- [-1, 65_536, 65_537, 1_000_000, 4_000_000_000, 18_446_744_073_709_551_615],
        binary <- [unaligned, binary_part(unaligned, 0, 0), :binary.copy(unaligned), ""],
        data <- [[size | binary], [[size | binary]], ["a", [size | binary]]] do
      try do
        JobLibrary.call(:flip, :yielding, [data])
      rescue
        error in ArgumentError -> error.__struct__
      end
    end
    |> Enum.uniq()
  end

  def unaligned_is_right do
    bytes = :crypto.strong_rand_bytes(300_000)

    for size <- [0, 1, 64, 65, 65_536, 65_537, 300_000] do
      part = binary_part(bytes, 0, size)
      <<_::3, unaligned::bitstring>> = <<1::3, part::binary>>

      expected = for <<byte <- part>>, into: <<>>, do: <<Bitwise.bxor(byte, 5)>>

      for function <- [:exor, :exor_inline, :exor_dirty, :exor_pool] do
        apply(:tame_exor, function, [unaligned, 5]) == expected
      end
    end
    |> List.flatten()
    |> Enum.all?()
  end

  @doc "Medians in us of a pool call with a list of that length that nobody reads, and with an empty one."
  def ignored(length) do
    list = Enum.to_list(1..length)
    me = self()

    for with <- [list, []] do
      times =
        for _ <- 1..15, do: elem(:timer.tc(fn -> ^me = JobResults.pool(0, :self, with) end), 0)

      Enum.at(Enum.sort(times), 7)
    end
    |> List.to_tuple()
  end

  @doc "Reductions of a call whose init takes that number of us and then refuses."
  def late_refusal(us) do
    {:reductions, before} = Process.info(self(), :reductions)
    :badarg = catch_error(fn -> JobLibrary.count_yielding(us, 0, :late) end)
    {:reductions, later} = Process.info(self(), :reductions)
    later - before
  end

  @doc "What the log says of two calls with a unit of 50 ms."
  def slow_unit do
    {:ok, _} = :application.ensure_all_started(:tame)
    me = self()
    :ok = :logger.add_handler(:here, __MODULE__, %{config: %{to: me}})
    for _ <- 1..2, do: JobLibrary.count_yielding(50_000, 0, :slow)
    Await.until(fn -> Process.info(self(), :message_queue_len) != {:message_queue_len, 0} end)
    # What was told later would come before this answer.
    _ = :tame_job_rates.rates()
    :logger.remove_handler(:here)
    logged([])
  end

  def log(%{msg: {format, args}}, %{config: %{to: to}}) when is_list(args),
    do: send(to, {:log, to_string(:io_lib.format(format, args))})

  def log(_, _), do: :ok

  defp logged(lines) do
    receive do
      {:log, line} -> logged([line | lines])
    after
      0 -> Enum.filter(lines, &(&1 =~ "a unit of its work"))
    end
  end

  @doc """
  The longest time for which the process ran at a stretch, and how long the call took, in us. It has room for what the
  call makes: a collection takes its own time.
  """
  def slices(fun) do
    me = self()

    pid =
      :erlang.spawn_opt(
        fn ->
          receive(do: (:go -> send(me, {:took, elem(:timer.tc(fun), 0)})))
          receive(do: (:end -> :ok))
        end,
        min_heap_size: 16_000_000
      )

    :erlang.trace(pid, true, [:running, :monotonic_timestamp])
    send(pid, :go)
    took = receive(do: ({:took, us} -> us))
    :erlang.trace(pid, false, [:running])
    delivered = :erlang.trace_delivered(pid)
    receive(do: ({:trace_delivered, ^pid, ^delivered} -> :ok))
    durations = durations(pid, nil, [])
    send(pid, :end)
    {Enum.max(durations), took}
  end

  defp durations(pid, since, all) do
    receive do
      {:trace_ts, ^pid, :in, _, at} ->
        durations(pid, at, all)

      {:trace_ts, ^pid, :out, _, at} when since != nil ->
        durations(pid, nil, [us(at - since) | all])

      {:trace_ts, ^pid, _, _, _} ->
        durations(pid, since, all)
    after
      0 -> all
    end
  end

  defp us(native), do: :erlang.convert_time_unit(native, :native, :microsecond)

  defp catch_error(fun) do
    fun.()
  catch
    :error, reason -> reason
  end
end
