defmodule Tame.GuideRefusalsTest do
  # docs/guide/isolate.md has each reason with which isolate, load_binary, restore and restart refuse.
  use ExUnit.Case, async: true

  @heading "\n## What isolate answers\n"
  @sources Path.wildcard("../src/isolate/*.erl") ++ ["../src/tame_native.erl"]

  # What load_nif/2 answers to a module's own -on_load, which makes on_load_failure of it, and what tame makes load and
  # upgrade of.
  @of_load_nif ~w(bad_lib load_returned upgrade_returned no_upgrade)

  defp in_table do
    [_, section] = String.split(File.read!("../docs/guide/isolate.md"), @heading)
    [section | _] = String.split(section, "\n## ")

    for [_, cell] <- Regex.scan(~r/^\| (`.*?) \|/m, section),
        [_, name] <- Regex.scan(~r/`(\w+)`/, cell),
        do: name
  end

  # As they stand in the source: what refused/3 gets, and what is beside a sentence.
  defp in_source do
    erlang =
      for file <- @sources,
          text = File.read!(file),
          pattern <- [
            ~r/refused\(\s*([a-z]\w*),\s*"/,
            ~r/\{error, \{([a-z]\w*), (?:text\(|"|string\(\)|Text\b|Sentence\b)/
          ],
          [_, name] <- Regex.scan(pattern, text),
          do: name

    # Those of a host that looks at a library.
    c =
      for file <- Path.wildcard("../c_src/host/life/*.c"),
          [_, name] <-
            Regex.scan(~r/(?:refuse\(refusal|print_error\(to),\s*"(\w+)"/, File.read!(file)),
          do: name

    # Those of code:load_binary/3 and of load_nif/2, which pass through.
    passed = ~w(on_load_failure not_purged sticky_directory badfile load upgrade reload)
    Enum.uniq(erlang ++ c ++ passed) -- @of_load_nif
  end

  test "each reason in the source stands in the table, once, and no other" do
    source = in_source()
    # The patterns find what they are to find.
    for name <- ~w(bad_option unknown_module no_host in_use share no_such_file hangs),
        do: assert(name in source)

    assert Enum.sort(in_table()) == Enum.sort(source)
  end

  test "each word of a host is one that tame knows" do
    words = Enum.map(:tame_control.words(), &Atom.to_string/1)

    for name <-
          ~w(no_such_file cannot_read wrong_architecture needs_newer_erts crashed exited hangs),
        do: assert(name in words)
  end
end
