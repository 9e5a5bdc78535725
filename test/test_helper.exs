# What a test needs besides Elixir is installed by tools/install-missing; a test whose tool is
# missing all the same says so and is counted as skipped, never passed over in silence.
:ok = Tame.Native.build()
ExUnit.start()
