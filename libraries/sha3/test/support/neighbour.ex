defmodule Tame.SHA3.Test.Neighbour do
  @moduledoc false
  # A process that wants to run each millisecond, beside one that hashes. In a VM with one scheduler.

  @calls ~w(hash chunks hash_many hash_many_long kt128 parallel_hash shake256 update)a ++
           ~w(small_chunks unaligned unaligned_message unaligned_key unaligned_permutation)a

  def calls, do: @calls

  # The most milliseconds that the neighbour was kept waiting in a call. The least of up to ten calls, until one is below
  # `enough`: a call that holds its scheduler does so each time, and a busy machine now and then.
  def late_ms(name, enough) do
    call = call(name)

    Enum.reduce_while(1..10, nil, fn _, least ->
      # An atom is more than any number.
      least = min(least, late_in(call))
      {if(least < enough, do: :halt, else: :cont), least}
    end)
  end

  # The same beside what does hold the scheduler: the VM compares terms without a break, and these two have 2^26 ends.
  def late_ms_beside_comparison do
    late_in(fn -> true = pairs(26) == pairs(26) end)
  end

  defp pairs(depth), do: Enum.reduce(1..depth, [], fn _, pairs -> [pairs | pairs] end)

  defp call(:hash) do
    data = :binary.copy("a", 256_000_000)
    fn -> :tame_sha3.hash(:sha3_256, data) end
  end

  defp call(:chunks) do
    data = List.duplicate(:binary.copy("a", 65), 1_000_000)
    fn -> :tame_sha3.hash(:sha3_256, data) end
  end

  # Up to 64 bytes, OTP copies them into larger ones.
  defp call(:small_chunks) do
    data = List.duplicate("a chunk of 17 B..", 1_000_000)
    fn -> :tame_sha3.hash(:sha3_256, data) end
  end

  defp call(:hash_many) do
    message = :binary.copy("a", 100)
    messages = List.duplicate(message, 1_000_000)
    fn -> :tame_sha3.hash_many(:sha3_256, messages) end
  end

  defp call(:hash_many_long) do
    messages = ["short", :binary.copy("a", 64_000_000), "short"]
    fn -> :tame_sha3.hash_many(:sha3_256, messages) end
  end

  defp call(:kt128) do
    data = :binary.copy("a", 256_000_000)
    fn -> :tame_sha3.kt128(data, 32) end
  end

  defp call(:parallel_hash) do
    data = :binary.copy("a", 256_000_000)
    fn -> :tame_sha3.parallel_hash128(data, 1_000_000, 32, "") end
  end

  defp call(:shake256), do: fn -> :tame_sha3.shake256("", 64_000_000) end

  defp call(:update) do
    data = :binary.copy("a", 64_000_000)

    fn ->
      {:kmac256, "key", ""}
      |> :tame_sha3.init()
      |> :tame_sha3.update(data)
      |> :tame_sha3.final(64_000_000)
    end
  end

  defp call(:unaligned) do
    data = unaligned(64_000_000)
    fn -> :tame_sha3.hash(:sha3_256, data) end
  end

  defp call(:unaligned_message) do
    data = unaligned(200_000_000)
    fn -> refused(fn -> :tame_sha3.hash_many(:sha3_256, [data]) end) end
  end

  defp call(:unaligned_key) do
    data = unaligned(200_000_000)
    fn -> refused(fn -> :tame_sha3.kmac128(data, "", 32, "") end) end
  end

  defp call(:unaligned_permutation) do
    data = unaligned(200_000_000)
    fn -> refused(fn -> :tame_sha3.keccak_f1600(data) end) end
  end

  # From the third bit of its first byte on.
  defp unaligned(size) do
    <<_::3, unaligned::bitstring>> = <<0::3, :binary.copy("a", size)::binary>>
    unaligned
  end

  defp refused(fun) do
    fun.()
    raise "was not refused"
  rescue
    _ in ArgumentError -> :ok
  end

  defp late_in(call) do
    owner = self()
    neighbour = spawn_link(fn -> beats(owner) end)
    receive(do: (:beats -> :ok))
    _ = call.()
    send(neighbour, {:stop, owner})
    receive(do: ({:late_ms, late} -> late))
  end

  defp beats(owner) do
    send(owner, :beats)
    beat(now(), 0)
  end

  # The last beat counts, too: it may be late when the word to stop is there already.
  defp beat(begun, worst) do
    receive do
      {:stop, owner} -> send(owner, {:late_ms, max(worst, late(begun))})
    after
      1 -> beat(now(), max(worst, late(begun)))
    end
  end

  # What a busy machine keeps from this VM is nobody's fault here: no more counts than the VM has worked meanwhile.
  defp late({begun, worked}) do
    {now, works} = now()
    min(now - begun - 1, works - worked)
  end

  defp now do
    {works, _} = :erlang.statistics(:runtime)
    {System.monotonic_time(:millisecond), works}
  end
end
