# What a test needs besides Elixir is installed by tools/install-missing; a test whose tool is
# missing all the same says so and is counted as skipped, never passed over in silence.
:ok = :tame_labs_native.build()
:ok = Tame.Test.RingHost.build()

# Real libraries that are isolated. Newer Elixir leaves what is no dependency out of the code path.
for folder <- Path.wildcard("#{:code.lib_dir()}/{jiffy,p1_*,bitcask,cl}-*/ebin") do
  Code.append_path(folder)
end

:ok = Tame.Test.MissingMethods.find()

# Several of these VMs may run at once, and count from the same number: each has its temporary files to itself.
temporary = Path.join(System.tmp_dir!(), "tame_test_#{System.pid()}")
File.mkdir_p!(temporary)
System.put_env("TMPDIR", temporary)

# Tests start mix beside each other, on what is compiled already. Newer Elixir says on standard output that one waits.
System.put_env("MIX_OS_CONCURRENCY_LOCK", "false")

# Not every Debian release has all of them.
missing =
  for module <- [:jiffy, :fast_tls, :bitcask, :ets_cache, :cl],
      :code.which(module) == :non_existing,
      do: {:needs, module}

for {:needs, module} <- missing, do: IO.puts("skip: #{module} is not installed")

# A message that comes is waited for no longer than it takes; the machine may be busy. What hangs is told after a quarter
# of an hour: no test has a time of its own.
ExUnit.start(
  exclude: missing,
  timeout: 900_000,
  assert_receive_timeout: 5000,
  formatters: [ExUnit.CLIFormatter, Tame.Test.FailuresAgain]
)

ExUnit.after_suite(&Tame.Test.FailuresAgain.print/1)
ExUnit.after_suite(fn _results -> File.rm_rf!(temporary) end)
