defmodule Tame.SHA3.Test.Secrets do
  @moduledoc false
  # Uses of a key in one VM, and a look at its memory from another one.

  @key "a key that is nowhere else in this machine"
  @data "8 bytes!"
  @custom "secrets"
  @rate 136

  # In this VM, which makes MACs.

  @doc "Keeps a state with the key in it."
  def keep do
    test = self()

    spawn(fn ->
      state = :tame_sha3.init(algorithm())
      send(test, :kept)
      Process.sleep(:infinity)
      :tame_sha3.final(state, 32)
    end)

    receive do: (:kept -> :ok)
  end

  @doc "Uses the key, and returns when nobody has a state any more."
  def use_key(calls) do
    {pid, monitor} = :erlang.spawn_opt(fn -> calls(calls) end, [:monitor, scheduler: 2])
    receive do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok)
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
  end

  defp calls(:in_one_call), do: for(_ <- 1..50, do: kmac(@data))

  defp calls(:in_pieces) do
    for _ <- 1..50 do
      state = :tame_sha3.init(algorithm())
      clone = :tame_sha3.clone(state)
      for one <- [state, clone], do: one |> :tame_sha3.update(@data) |> :tame_sha3.final(32)
    end
  end

  defp calls(:without_end), do: for(_ <- 1..50, do: :tame_sha3.init(algorithm()))

  defp calls(:killed) do
    {pid, monitor} = spawn_monitor(fn -> kmac(:binary.copy("a", 300_000_000)) end)
    Process.sleep(50)
    Process.exit(pid, :kill)
    receive do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok)
  end

  defp kmac(data), do: :tame_sha3.kmac256(@key, data, 32, @custom)
  defp algorithm, do: {:kmac256, @key, @custom}

  # In the VM that looks on.

  @doc "What stays: looked for again while there is something, because destructors run when a scheduler has a moment."
  def left(os_pid, looks \\ 50) do
    case found(os_pid) do
      [_ | _] when looks > 1 ->
        Process.sleep(100)
        left(os_pid, looks - 1)

      found ->
        found
    end
  end

  @doc "Where in a VM's memory the states are that the key leads to, by name and address."
  def found(os_pid) do
    {:ok, memory} = :file.open("/proc/#{os_pid}/mem", [:read, :raw, :binary])

    for {from, to} <- readable(os_pid),
        {:ok, bytes} <- [:file.pread(memory, from, to - from)],
        {name, needle} <- needles(),
        {at, _} <- :binary.matches(bytes, needle),
        do: {name, Integer.to_string(from + at, 16)}
  end

  defp readable(os_pid) do
    for line <- File.stream!("/proc/#{os_pid}/maps"),
        not (line =~ "[v"),
        [_, from, to] <- [Regex.run(~r/^([0-9a-f]+)-([0-9a-f]+) r/, line)],
        do: {String.to_integer(from, 16), String.to_integer(to, 16)}
  end

  # The part of a state that no data is mixed into, after the key and after the digest.
  defp needles do
    keyed = Enum.reduce(blocks(), <<0::1600>>, &:tame_sha3.keccak_f1600(mix(&1, &2)))

    # The data, the size of the digest in bits with its own size, the suffix; the last bit of the block.
    last = @data <> <<1, 0, 2, 4>>
    last = last <> :binary.copy(<<0>>, @rate - byte_size(last) - 1) <> <<0x80>>
    ended = :tame_sha3.keccak_f1600(mix(last, keyed))
    true = binary_part(ended, 0, 32) == kmac(@data)
    for {name, state} <- [keyed: keyed, ended: ended], do: {name, binary_part(state, @rate, 64)}
  end

  # SP 800-185: what comes before the key, and the key.
  defp blocks do
    [
      number(@rate) <> string("KMAC") <> string(@custom),
      number(@rate) <> string(@key)
    ]
    |> Enum.map(&(&1 <> :binary.copy(<<0>>, @rate - byte_size(&1))))
  end

  defp string(bytes), do: number(8 * byte_size(bytes)) <> bytes

  defp number(n) do
    bytes = :binary.encode_unsigned(n)
    <<byte_size(bytes)>> <> bytes
  end

  defp mix(block, state), do: :crypto.exor(block <> <<0::512>>, state)
end
