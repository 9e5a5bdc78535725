# How fast keys are decoded, in one interleaved run: typed text byte by byte, as it comes from fingers, and by the
# kilobyte, as it is pasted; beside them what a list of the same characters costs (unicode:characters_to_list/1).
#
#     make bench

rounds = 30
size = 100_000
text = :binary.copy("the quick brown fox ", div(size, 20))
arrows = :binary.copy("\e[1;5A", div(size, 6))
wide = :binary.copy("é€😀 ", div(size, 10))
pasted = "\e[200~" <> text <> "\e[201~"

pieces = fn bytes, size ->
  for at <- 0..(byte_size(bytes) - 1)//size,
      do: binary_part(bytes, at, min(size, byte_size(bytes) - at))
end

decode = fn pieces ->
  Enum.reduce(pieces, :tame_tty_keys.new(), fn piece, state ->
    elem(:tame_tty_keys.decode(piece, state), 1)
  end)
end

ways = [
  {"characters_to_list, of 1 KiB", pieces.(text, 1024),
   &Enum.each(&1, fn piece -> :unicode.characters_to_list(piece) end)},
  {"text, of 1 KiB", pieces.(text, 1024), decode},
  {"text, byte by byte", pieces.(text, 1), decode},
  {"wide characters, of 1 KiB", pieces.(wide, 1024), decode},
  {"arrows with ctrl, of 1 KiB", pieces.(arrows, 1024), decode},
  {"pasted, of 1 KiB", pieces.(pasted, 1024), decode}
]

least =
  for round <- 1..rounds, {name, input, fun} <- Enum.shuffle(ways), reduce: %{} do
    least ->
      :erlang.garbage_collect()
      {us, _} = :timer.tc(fn -> fun.(input) end)
      bytes = input |> Enum.map(&byte_size/1) |> Enum.sum()
      # The first round warms up.
      if round == 1, do: least, else: Map.update(least, name, bytes / us, &max(&1, bytes / us))
  end

cpu =
  case File.read("/proc/cpuinfo") do
    {:ok, text} -> Regex.run(~r/model name\s*: (.*)/, text) |> List.wrap() |> List.last()
    _ -> nil
  end

IO.puts(
  "OTP #{:erlang.system_info(:otp_release)}, #{:erlang.system_info(:schedulers_online)} schedulers, #{cpu || "?"}; " <>
    "#{rounds - 1} rounds, the best of each\n"
)

base = least["characters_to_list, of 1 KiB"]

for {name, _, _} <- ways do
  rate = least[name]

  IO.puts(
    "#{String.pad_trailing(name, 30)} #{:io_lib.format("~8.1f MB/s ~6.2f", [rate, rate / base])}"
  )
end
