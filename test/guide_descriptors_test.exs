defmodule Tame.GuideDescriptorsTest do
  # The complete libraries of docs/guide/descriptors.md, compiled and run as they stand there.
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

  # Credit is kept, also across a reader that waits; one that dies ends those that wait with it, and those alone.
  @pulse """
  P = pulse:start(),
  {error, not_started} = pulse:credit(P, 1),
  {ok, Sup} = pulse:start_readers(),
  Take = fun(Q, Ms) -> receive {pulse, Q, N} when N >= 1 -> tick after Ms -> none end end,
  ok = pulse:credit(P, 3),
  [tick, tick, tick] = [Take(P, 5000) || _ <- [1, 2, 3]],
  none = Take(P, 50),
  ok = pulse:credit(P, 1),
  tick = Take(P, 5000),
  Reader = tame_fd_readers:of_fd(pulse, P),
  true = lists:member(Reader, [C || {_, C, _, _} <- supervisor:which_children(Sup)]),
  Others = [Q || _ <- lists:seq(1, 100), Q <- [pulse:start()],
                 tame_fd_readers:of_fd(pulse, Q) =/= Reader],
  true = length(Others) > 10,
  Other = hd(Others),
  [ok = pulse:credit(Q, 1000) || Q <- [P, Other]],
  tick = Take(P, 5000),
  logger:set_primary_config(level, none),
  Monitor = monitor(process, Reader),
  exit(Reader, kill),
  receive {'DOWN', Monitor, _, _, _} -> ok end,
  Drain = fun D(Q) -> case Take(Q, 200) of tick -> D(Q); none -> none end end,
  none = Drain(P),
  tick = Take(Other, 5000),
  Again = fun A() -> case tame_fd_readers:of_fd(pulse, P) of undefined -> A(); New -> New end end,
  true = Again() =/= Reader,
  _ = (fun() -> tame_fd_readers:of_fd(pulse, P) ! hello end)(),
  tick = Take(Other, 5000),
  io:put_chars("right")
  """

  test "the ticker ticks, for several, with deadlines, and is closed" do
    assert run("ticker", @checks) == {"right", 0}
  end

  test "the pulse sends for credit, read by its readers" do
    assert run("pulse", @pulse) == {"right", 0}
  end

  test "there is no other file" do
    assert Enum.sort(Map.keys(@files)) == ~w(pulse.c pulse.erl ticker.c ticker.erl)
  end

  defp run(name, checks) do
    dir = tmp_dir!()
    for {file, text} <- @files, do: File.write!(Path.join(dir, file), text)
    assert {"", 0} = compile(dir, name <> ".c")
    assert {"", 0} = erlc(dir, name <> ".erl")
    erl(dir, String.replace(checks, "\n", " ") |> String.trim_trailing())
  end
end
