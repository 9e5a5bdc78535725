# A million hostile replies: what a host may write into the ring, drawn from every size class and from forms that are
# wrong on purpose, against a VM of its own. Prints what was seen, and what is left.
#
#     cd test && MIX_ENV=test mix run ../soak/replies.exs     REPLIES=100000 for fewer
#
# A slice is what the emulator's own long_schedule says, by the clock on the wall: turns of other processes of the machine
# are in it.
alias Tame.Test.{ExternalForms, RingHost, SizeClasses}

count = String.to_integer(System.get_env("REPLIES", "1000000"))
seed = String.to_integer(System.get_env("SEED", "#{:rand.uniform(999_999)}"))

forms =
  (Enum.map(ExternalForms.hostile(), &elem(&1, 1)) ++ Enum.map(ExternalForms.deadly(), &elem(&1, 1)))
  |> List.to_tuple()

reply = fn n ->
  case rem(n, 4) do
    0 -> elem(forms, rem(div(n, 4), tuple_size(forms)))
    1 -> ExternalForms.random(seed + n)
    2 -> SizeClasses.etf(seed + n)
    3 -> :erlang.term_to_binary(SizeClasses.random(seed + n, 4000))
  end
end

kind = fn
  {:value, _} -> :value
  {:error, {:bad_reply, what}} -> what
  {:error, {:reply_too_large, _}} -> :reply_too_large
  {:error, what} -> what
end

host = RingHost.start_ring(["reply_bytes=67108864"])

play = fn from, to ->
  Enum.reduce(from..to, %{}, fn n, seen ->
    Map.update(seen, kind.(RingHost.call(host, :raw, [reply.(n)])), 1, &(&1 + 1))
  end)
end

# A kind of reply that has not been seen may load a module.
_ = play.(1, min(count, 20_000))
:erlang.garbage_collect()
# Memory first: to ask for it makes atoms.
memory = :erlang.memory(:total)
atoms = :erlang.system_info(:atom_count)
:erlang.system_monitor(self(), long_schedule: 10)

tasks =
  for t <- 0..1, do: Task.async(fn -> play.(div(count, 2) * t + 1, div(count, 2) * (t + 1)) end)

seen =
  tasks |> Task.await_many(:infinity) |> Enum.reduce(&Map.merge(&1, &2, fn _, a, b -> a + b end))

:erlang.system_monitor(:undefined)

slices =
  Stream.repeatedly(fn ->
    receive do
      {:monitor, _, :long_schedule, info} -> info[:timeout]
    after
      0 -> nil
    end
  end)
  |> Enum.take_while(& &1)

Enum.each(Process.list(), &:erlang.garbage_collect/1)

IO.puts(
  "replies #{seen |> Map.values() |> Enum.sum()}, seed #{seed}, OTP #{:erlang.system_info(:otp_release)}"
)

for {what, n} <- Enum.sort_by(seen, &(-elem(&1, 1))),
    do: IO.puts("  #{String.pad_leading("#{n}", 9)} #{what}")

IO.puts("atoms #{atoms} -> #{:erlang.system_info(:atom_count)}")

IO.puts("memory #{div(memory, 1_048_576)} -> #{div(:erlang.memory(:total), 1_048_576)} MiB")

IO.puts("slices over 10 ms: #{length(slices)}, the longest #{Enum.max([0 | slices])} ms")
{:value, 1} = RingHost.call(host, :echo, [1])
