defmodule Tame.GuideDescriptorsTest do
  # The complete library of docs/guide/descriptors.md, compiled and run as it stands there.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  @guide File.read!("../docs/guide/descriptors.md")
  @files Map.new(
           Regex.scan(~r/^```\w+ file=(\S+)\n(.*?)^```$/ms, @guide),
           fn [_, name, text] -> {name, text} end
         )

  @checks """
  T = ticker:start(5),
  true = ticker:wait(T) >= 1,
  true = ticker:wait(T, 5000) >= 1,
  Slow = ticker:start(1000),
  {error, timeout} = ticker:wait(Slow, 0),
  {error, timeout} = ticker:wait(Slow, 10),
  Self = self(),
  Waiting = [spawn(fun() -> Self ! {self(), ticker:wait(Slow)} end) || _ <- [1, 2, 3]],
  Many = [spawn(fun() -> Self ! {self(), ticker:wait(T)} end) || _ <- [1, 2, 3]],
  [receive {P, N} when N >= 1 -> ok end || P <- Many],
  ok = ticker:close(Slow),
  [receive {P, {error, closed}} -> ok end || P <- Waiting],
  {error, closed} = ticker:wait(Slow),
  ok = ticker:close(Slow),
  {'EXIT', {badarg, _}} = catch ticker:wait(make_ref()),
  {'EXIT', {badarg, _}} = catch ticker:start(0),
  0 = receive _ -> 1 after 0 -> 0 end,
  io:put_chars("right")
  """

  test "the ticker ticks, for several, with deadlines, and is closed" do
    assert Enum.sort(Map.keys(@files)) == ~w(ticker.c ticker.erl)
    dir = tmp_dir!()
    for {name, text} <- @files, do: File.write!(Path.join(dir, name), text)
    assert {"", 0} = compile(dir, "ticker.c")
    assert {"", 0} = erlc(dir, "ticker.erl")
    assert erl(dir, String.replace(@checks, "\n", " ") |> String.trim_trailing()) == {"right", 0}
  end
end
