# SHA3-256 of files, in constant memory, as sha256sum prints it:
#
#     mix run examples/sha3sum.exs FILE...
for path <- System.argv() do
  digest =
    path
    |> File.stream!([], 1_048_576)
    |> Enum.into(Tame.SHA3.new(:sha3_256))
    |> Tame.SHA3.final()

  IO.puts("#{Base.encode16(digest, case: :lower)}  #{path}")
end

{:ok, status} = File.read("/proc/self/status")
[_, kb] = Regex.run(~r/VmHWM:\s+(\d+) kB/, status)
IO.puts(:stderr, "at most #{div(String.to_integer(kb), 1024)} MiB resident")
