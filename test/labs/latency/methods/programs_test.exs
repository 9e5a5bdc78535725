defmodule Tame.Latency.Methods.ProgramsTest do
  # Not async: the node methods make this VM distributed and end that again.
  use ExUnit.Case, async: false

  import Tame.Test.OsProcess, only: [gone?: 1, await_gone: 1, parent: 1, signal: 2, stop: 1]

  alias Tame.Latency.{Distribution, Methods, Program}
  alias Tame.Test.MissingMethods

  @processes MissingMethods.processes()
  @nodes MissingMethods.nodes()

  # How long a call may take to notice that the other side was killed.
  @promptly_ms 2_000

  for module <- @processes ++ @nodes do
    describe "#{module.describe().id}" do
      @describetag method: module
      @describetag skip: MissingMethods.why_not(module)

      setup %{method: module} do
        {:ok, state} = module.open()
        {:ok, state: state, program: program(state)}
      end

      test "gives every type of term back", %{method: module, state: state} do
        for {what, term} <- terms() do
          back = module.echo(state, term)
          assert back === term, "#{what} came back as #{inspect(back, limit: 10)}"
        end

        assert module.close(state) == :ok
      end

      test "gives payloads of any size back, in any order", %{method: module, state: state} do
        for size <- [0, 1, 1_048_576, 63, 65_521, 65_535, 65_536, 4_000_000, 64, 1_000] do
          payload = pattern(size)
          assert module.echo(state, payload) === payload, "#{size} bytes"
        end

        module.close(state)
      end

      test "leaves no OS process and no message when it is closed", %{
        method: module,
        state: state,
        program: program
      } do
        refute gone?(program.os_pid)
        module.echo(state, :one)
        assert module.close(state) == :ok
        assert gone?(program.os_pid)
        assert Process.info(self(), :messages) == {:messages, []}
      end

      test "raises with the exit status when the program was killed between two calls", %{
        method: module,
        state: state,
        program: program
      } do
        module.echo(state, :one)
        signal(program.os_pid, "KILL")
        assert_killed(module, state, program, :two)
        # A second call does not wait for what has been said already.
        assert_killed(module, state, program, :three)
        assert module.close(state) == :ok
      end

      # erl_child_setup, the parent of every port program, tells the VM of their ends. While it is
      # stopped, the VM writes to a program that is long gone.
      test "raises with the exit status when the VM learns late that the program is gone", %{
        method: module,
        state: state,
        program: program
      } do
        parent = parent(program.os_pid)
        kill = "kill -STOP #{parent}; kill -KILL #{program.os_pid}; sleep 0.2; kill -CONT #{parent}"
        Port.open({:spawn_executable, "/bin/sh"}, args: ["-c", kill])
        await_gone(program.os_pid)
        assert_killed(module, state, program, :one)
        assert module.close(state) == :ok
      end

      test "raises with the exit status when the program is killed in the middle of a call", %{
        method: module,
        state: state,
        program: program
      } do
        # Stopped, it takes only what its buffers hold of 4 MB: the call is under way.
        stop(program.os_pid)
        {:ok, _} = :timer.apply_after(200, Tame.Test.OsProcess, :signal, [program.os_pid, "KILL"])
        assert_killed(module, state, program, pattern(4_000_000))
        assert module.close(state) == :ok
      end

      test "raises with the exit status when the program is killed at any moment", %{
        method: module,
        state: state
      } do
        module.close(state)

        # A Java machine takes its time to start.
        for round <- 1..if(module == Methods.JavaNode, do: 2, else: 12) do
          {:ok, state} = module.open()
          program = program(state)

          {:ok, _} =
            :timer.apply_after(20 + round, Tame.Test.OsProcess, :signal, [program.os_pid, "KILL"])

          error = assert_raise RuntimeError, fn -> echo_for_ever(module, state) end
          assert error.message =~ "exit status 137"
          assert module.close(state) == :ok
        end
      end

      test "leaves no OS process when the measuring process is killed", %{
        method: module,
        state: state
      } do
        module.close(state)
        test = self()

        {measuring, monitor} =
          spawn_monitor(fn ->
            {:ok, state} = module.open()
            send(test, {:opened, program(state).os_pid})
            echo_for_ever(module, state)
          end)

        assert_receive {:opened, os_pid}, 30_000
        Process.exit(measuring, :kill)
        assert_receive {:DOWN, ^monitor, :process, ^measuring, :killed}
        await_gone(os_pid)
        # Distribution is over as well: a node that joins now is the first.
        await_no_distribution()
      end
    end
  end

  for module <- @nodes do
    describe "#{module.describe().id}, whose cookie is refused" do
      @tag skip: MissingMethods.why_not(module)
      test "says so" do
        assert {:error, why} = without_log(fn -> unquote(module).open(cookie: :not_our_cookie) end)
        assert why =~ "refused the handshake: the cookie is not its own"
        assert why =~ "exit status 1"
        refute Node.alive?()
      end
    end
  end

  describe "both nodes at once" do
    test "share one distribution, which ends with the last of them" do
      opened = for module <- @nodes, {:ok, state} <- [module.open()], do: {module, state}

      for {module, state} <- opened do
        assert Node.alive?()
        assert module.echo(state, {:still, node()}) == {:still, node()}
        assert module.close(state) == :ok
      end

      refute Node.alive?()
      # The process that keeps count replies before it ends.
      assert Tame.Await.until(fn -> Process.whereis(Distribution) == nil end)
    end
  end

  # A supervisor waits a second for the processes of distribution, and a slow machine takes longer.
  test "the VM is no node when leave/0 returns, however slowly distribution ends" do
    {:ok, _} = Distribution.join()
    test = self()

    slow =
      spawn_link(fn ->
        :erlang.suspend_process(Process.whereis(:net_kernel))
        send(test, :suspended)
        # The time is what is tested: longer than the second that a supervisor waits.
        Process.sleep(1_500)
      end)

    monitor = Process.monitor(slow)
    assert_receive :suspended, 10_000
    assert without_log(&Distribution.leave/0) == :ok
    # Who was suspended goes on when the suspending process ends.
    assert_received {:DOWN, ^monitor, _, _, _}
    refute Node.alive?()
  end

  describe "a program that does not start" do
    test "is named with its path" do
      assert Program.open("/no/such/program", [], []) ==
               {:error, "/no/such/program does not start: no such file or directory"}
    end

    test "is explained by its exit status and its last line" do
      {:ok, program} = Program.open(Methods.Port.program(), ["udp"], Program.lines())

      assert Program.how_it_ended(program) =~
               "exit status 2: tame_echo: bad command line: udp; expected: stdio | unix PATH"

      Program.close(program)
    end

    test "is refused a port number that is none" do
      {:ok, program} = Program.open(Methods.Port.program(), ["tcp", "70000"], Program.lines())
      assert Program.how_it_ended(program) =~ "not a port number from 1 to 65535: 70000"
      Program.close(program)
    end
  end

  defp terms do
    local = System.unique_integer()

    [
      atom: :ok,
      atom_in_unicode: :"größer ≠",
      empty_atom: :"",
      small_integer: 42,
      negative_integer: -129,
      integer_of_four_bytes: -2_147_483_648,
      small_big_integer: 0x7FFF_FFFF_FFFF_FFFF,
      bignum: Integer.pow(2, 200) + 1,
      negative_bignum: -Integer.pow(3, 300),
      bignum_above_255_bytes: Integer.pow(7, 1_000),
      float: 1.5,
      small_float: -2.2250738585072014e-308,
      negative_zero: -0.0,
      empty_tuple: {},
      empty_list: [],
      empty_binary: "",
      empty_map: %{},
      nested_maps: %{{1, 2} => %{c: nil}, a: %{"b" => %{3 => [%{}, %{[1] => {}}]}}},
      large_map: Map.new(1..100, &{&1, %{&1 => to_string(&1)}}),
      large_tuple: List.to_tuple(Enum.to_list(1..300)),
      text: "größer ≠",
      string_list: ~c"only bytes",
      list_of_integers: [1, -1, 256, 70_000],
      long_list: Enum.to_list(1..70_000),
      improper_list: [1, 2 | :three],
      bitstring: <<1, 2, 5::3>>,
      one_bit: <<1::1>>,
      binary_of_1_mib: pattern(1_048_576),
      reference: make_ref(),
      pid: self(),
      old_pid: :erlang.list_to_pid(~c"<0.32767.3>"),
      port: hd(Port.list()),
      closure: fn x -> {x, local} end,
      closure_without_environment: fn -> :constant end,
      external_fun: &Enum.map/2,
      all_in_one: {make_ref(), [self() | fn -> local end], %{&is_atom/1 => <<7::5>>}}
    ]
  end

  # Its period is prime, so that bytes which got lost or doubled do not go unseen.
  defp pattern(size) do
    period = for i <- 1..251, into: <<>>, do: <<i * 31>>
    binary_part(:binary.copy(period, div(size, 251) + 1), 0, size)
  end

  defp program(%Program{} = program), do: program
  defp program({_socket, program}), do: program
  defp program({_pid, _port, program}), do: program

  defp echo_for_ever(module, state) do
    payload = {:payload, pattern(70_000)}
    Stream.repeatedly(fn -> ^payload = module.echo(state, payload) end) |> Stream.run()
  end

  defp assert_killed(module, state, program, term) do
    {us, error} =
      :timer.tc(fn -> assert_raise(RuntimeError, fn -> module.echo(state, term) end) end)

    assert error.message =~ "(OS process #{program.os_pid}) ended with exit status 137 (signal 9)"
    assert us < @promptly_ms * 1000, "took #{us} us"
  end

  # The VM logs the refusal too. ExUnit's capture_log wants the logger application, which nothing
  # here needs.
  defp without_log(fun) do
    %{level: level} = :logger.get_primary_config()
    :logger.set_primary_config(:level, :none)

    try do
      fun.()
    after
      :logger.set_primary_config(:level, level)
    end
  end

  defp await_no_distribution do
    if server = Process.whereis(Distribution) do
      monitor = Process.monitor(server)
      assert_receive {:DOWN, ^monitor, _, _, _}, 10_000
    end

    refute Node.alive?()
  end
end
