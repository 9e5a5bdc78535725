defmodule Tame.GuideSessionsTest do
  # The shell sessions of the guides, run in a VM of their own, give what stands there.
  use ExUnit.Case, async: true

  alias Tame.Test.{PeerVm, ShellSession}

  # What the session of operate.md needs of telemetry: events come to who attached for them.
  @telemetry [
    "-module(telemetry).",
    "-export([attach_many/4, execute/3]).",
    """
    attach_many(_, Events, Fun, Config) ->
        lists:foreach(fun(Event) -> persistent_term:put({telemetry, Event}, {Fun, Config}) end, Events).
    """,
    """
    execute(Event, Measurements, Metadata) ->
        case persistent_term:get({telemetry, Event}, none) of
            {Fun, Config} -> Fun(Event, Measurements, Metadata, Config), ok;
            none -> ok
        end.
    """
  ]

  # tame's code is on the path; it does not run.
  defp peer do
    peer = PeerVm.start_link()

    forms =
      for text <- @telemetry do
        {:ok, tokens, _} = text |> String.to_charlist() |> :erl_scan.string()
        {:ok, form} = :erl_parse.parse_form(tokens)
        form
      end

    {:ok, :telemetry, beam} = :compile.forms(forms)

    {:module, :telemetry} =
      :peer.call(peer, :code, :load_binary, [:telemetry, ~c"telemetry.erl", beam])

    peer
  end

  for {name, tags} <- [async: [], operate: [needs: :jiffy]] do
    for {tag, value} <- tags, do: @tag([{tag, value}])

    test "docs/guide/#{name}.md" do
      page = File.read!("../docs/guide/#{unquote(name)}.md")
      session = ShellSession.read(page)
      # Every block is a session, and every prompt was found.
      assert length(Regex.scan(~r/^```\w+$/m, page)) ==
               length(Regex.scan(~r/^```erlang\n\d+> /m, page))

      assert Enum.map(session, &elem(&1, 0)) == Enum.to_list(1..length(session))

      commands = Enum.map(session, &elem(&1, 1))
      peer = peer()

      if unquote(name) == :async,
        do: {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame])

      results = :peer.call(peer, ShellSession, :run, [commands], 600_000)

      for {{number, command, expected}, result} <- Enum.zip(session, results) do
        assert ShellSession.match?(result, expected),
               "#{number}> #{command}\nis: #{result}\nthere: #{expected}"
      end
    end
  end

  @tag needs: :jiffy
  test "the session of the README" do
    session = ShellSession.read(File.read!("../README.md"))
    assert Enum.map(session, &elem(&1, 0)) == Enum.to_list(1..length(session))
    results = :peer.call(peer(), ShellSession, :run, [Enum.map(session, &elem(&1, 1))], 600_000)

    for {{number, command, expected}, result} <- Enum.zip(session, results) do
      # The keys of a map come in another order from OTP 26 on.
      expected = String.replace(expected, ~r/crashed,#\{.*\}\}\}$/, ~S"crashed,#{...}}}")

      assert ShellSession.match?(result, expected),
             "#{number}> #{command}\nis: #{result}\nthere: #{expected}"
    end
  end

  @tag needs: :jiffy
  test "docs/guide/isolate.md has each key of tame:info/0, and no other" do
    guide = File.read!("../docs/guide/isolate.md")
    [_, section] = String.split(guide, "\n## What there is to see\n")
    [section | _] = String.split(section, "\n## ")

    [of_module, of_host] =
      for [table] <- Regex.scan(~r/^\| of a .*\n(?:\|.*\n)+/m, section) do
        for [_, cell] <- Regex.scan(~r/^\| (`.*?) \|/m, table),
            [_, key] <- Regex.scan(~r/`(\w+)`/, cell),
            do: String.to_atom(key)
      end

    peer = peer()
    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame])
    :ok = :peer.call(peer, :tame, :isolate, [:jiffy])
    [1] = :peer.call(peer, :jiffy, :decode, ["[1]"])
    %{jiffy: %{hosts: [host]} = module} = :peer.call(peer, :tame, :info, [])
    assert Enum.sort(of_module) == Enum.sort(Map.keys(module))
    assert Enum.sort(of_host) == Enum.sort(Map.keys(host))
  end

  test "a session that is not as it stands there is found out" do
    page =
      "```erlang\n1> X = 1 +\n     1.\n2\n2> {X, self()}.\n{3,<...>}\n3> error(a).\n** exception error: a\n```\n"

    session = ShellSession.read(page)
    assert [{1, "X = 1 +\n     1.", "2"}, {2, _, _}, {3, _, _}] = session
    results = session |> Enum.map(&elem(&1, 1)) |> ShellSession.run()

    assert for(
             {{_, _, expected}, result} <- Enum.zip(session, results),
             do: ShellSession.match?(result, expected)
           ) == [true, false, true]
  end

  test "every link of the guides leads to a file" do
    for guide <- Path.wildcard("../docs/guide/*.md"),
        [_, path] <- Regex.scan(~r/\]\(([^)#:]+)\)/, File.read!(guide)) do
      assert File.exists?(Path.join("../docs/guide", path)), "#{guide}: #{path}"
    end
  end
end
