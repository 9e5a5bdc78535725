defmodule Tame.Host.LifeTest do
  # How a host begins and ends: refusals, crashes, hangs, orphans. c_src/host/life.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{CLibrary, Contract, Host, OsProcess}

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{library: Contract.build(folder), folder: folder}
  end

  defp start(library, options \\ []) do
    host = Host.load!(Host.start(options), library, :contract_nif)
    on_exit(fn -> Host.stop(host) end)
    host
  end

  describe "a library that dies" do
    for {name, status} <- [
          crash_segv: 139,
          crash_fpe: 136,
          crash_abort: 134,
          crash_exit: 23,
          crash_stack: 139
        ] do
      test "#{name}: the exit status tells", %{library: library} do
        host = start(library)
        assert {:exit_status, unquote(status)} = Host.call(host, unquote(name), [[]])
        assert Await.until(fn -> OsProcess.gone?(Host.os_pid(host)) end)
      end
    end

    # {NIF, signal, the address of the fault or nil, what its backtrace names first}
    for {name, signal, address, frame} <- [
          {:crash_segv, 11, 8,
           ~r/^contract_nif\.so\(contract_faults\+0x[0-9a-f]+\) \[0x[0-9a-f]+\]$/},
          {:crash_fpe, 8, nil, ~r/^contract_nif\.so\(\+0x[0-9a-f]+\) \[0x[0-9a-f]+\]$/},
          {:crash_abort, 6, 0, ~r/^libc\.so\.6\(/},
          {:crash_stack, 11, nil, ~r/^contract_nif\.so\(/},
          {:crash_jump, 11, 0, ~r/^\[0x0\]$/}
        ] do
      test "#{name}: the guard says where", %{library: library} do
        host = start(library)
        status = 128 + unquote(signal)
        assert {:exit_status, ^status} = Host.call(host, unquote(name), [[]])
        ended = Host.ended()
        assert ended.signal == unquote(signal)
        assert ended.function == {to_string(unquote(name)), 1}
        assert unquote(address) in [nil, ended.address]
        assert ended.address != 0 or unquote(address) == 0
        [first | rest] = String.split(ended.backtrace, "\n", trim: true)
        assert first =~ unquote(Macro.escape(frame))
        assert byte_size(ended.backtrace) <= 8192
        # By way of the library's function to the program that called it, where there is a way.
        case unquote(name) do
          :crash_stack -> assert length(rest) > 50
          :crash_jump -> assert hd(rest) =~ ~r/^contract_nif\.so\(/
          _ -> assert Enum.any?(rest, &(&1 =~ ~r/^tame_host/))
        end
      end
    end

    test "a thread of the library's own: no function, but the place", %{library: library} do
      for {name, frame} <- [crash_thread: "contract_faults", crash_thread_stack: "contract_nif.so"] do
        host = start(library)
        assert {:exit_status, 139} = Host.call(host, name, [[]])
        assert %{signal: 11, function: {"", 0}, backtrace: backtrace} = Host.ended()
        assert backtrace =~ frame
      end
    end

    test "twenty threads at once, a stack that is gone: the signal stays", %{library: library} do
      for name <- [:crash_many, :crash_without_stack] do
        host = start(library)
        assert {:exit_status, 139} = Host.call(host, name, [[]])
        assert %{signal: 11} = Host.ended()
      end
    end

    test "what is no crash leaves no record", %{library: library} do
      for {name, status, signal} <-
            [crash_exit: {23, 0}, crash_kill: {137, 9}]
            |> Enum.map(fn {n, {st, si}} -> {n, st, si} end) do
        host = start(library)
        assert {:value, 11} = Host.call(host, :crash_of_child, [[]])
        assert {:exit_status, ^status} = Host.call(host, name, [[]])

        assert Host.ended() == %{
                 signal: signal,
                 address: 0,
                 function: {"", 0},
                 backtrace: "",
                 stderr: ""
               }
      end
    end

    test "the guard passes on what a host forges, with bounds of its own", %{library: library} do
      host = start(library)
      assert {:exit_status, 137} = Host.call(host, :forge_record, [[]])
      ended = Host.ended()
      assert {9, 0xFFFF_FFFF_FFFF_FFFF} = {ended.signal, ended.address}
      assert {String.duplicate(<<255>>, 255), 255} == ended.function
      assert byte_size(ended.backtrace) == 8192
    end

    test "signals that are sent: no address", %{folder: folder} do
      library =
        compile(folder, "raises", """
        #include <erl_nif.h>
        #include <signal.h>
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { int number; (void)argc; enif_get_int(env, argv[0], &number); raise(number); return argv[0]; }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(raises, functions, NULL, NULL, NULL, NULL)
        """)

      for signal <- [4, 6, 7, 8, 11, 31] do
        host = Host.load!(Host.start(), library, :raises)
        status = 128 + signal
        assert {:exit_status, ^status} = Host.call(host, :f, [signal])
        assert %{signal: ^signal, address: 0, function: {"f", 1}} = ended = Host.ended()
        assert ended.backtrace =~ "raises.so("
      end
    end

    # What names the places in a backtrace waits for a lock that another thread never gives back.
    test "a record that cannot be finished: the signal stays", %{folder: folder} do
      stuck =
        compile(folder, "stuck", """
        #include <unistd.h>
        __attribute__((constructor)) static void begin(void)
        { (void)!write(9, "x", 1); for (;;) pause(); }
        """)

      library =
        compile(folder, "faults_then", """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <erl_nif.h>
        #include <pthread.h>
        #include <signal.h>
        #include <unistd.h>
        static void *open_it(void *path) { return dlopen(path, RTLD_NOW); }
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        {
            int ends[2];
            pthread_t thread;
            char byte;
            (void)env; (void)argc;
            if (pipe(ends) < 0 || dup2(ends[1], 9) < 0)
                return argv[0];
            pthread_create(&thread, NULL, open_it, "#{stuck}");
            (void)!read(ends[0], &byte, 1); /* the constructor runs, under the linker's lock */
            raise(SIGSEGV);
            return argv[0];
        }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(faults_then, functions, NULL, NULL, NULL, NULL)
        """)

      host = Host.load!(Host.start(), library, :faults_then)
      assert {:exit_status, 139} = Host.call(host, :f, [1])
      assert %{signal: 11, function: {"f", 1}} = Host.ended()
    end

    test "a library that handles the signal itself", %{folder: folder} do
      library =
        compile(folder, "handles", """
        #include <erl_nif.h>
        #include <signal.h>
        #include <unistd.h>
        static void leave(int number) { _exit(number); }
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { (void)env; (void)argc; raise(SIGSEGV); return argv[0]; }
        static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
        { (void)env; (void)data; (void)info; signal(SIGSEGV, leave); return 0; }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(handles, functions, load, NULL, NULL, NULL)
        """)

      host = Host.load!(Host.start(), library, :handles)
      assert {:exit_status, 11} = Host.call(host, :f, [[]])
      assert %{signal: 0, backtrace: ""} = Host.ended()
    end

    @tag needs: :jiffy
    test "jiffy 1.1.1 divides by zero, in the host only" do
      host = Host.load!(Host.start(), Host.library!(:jiffy, "jiffy"), :jiffy)
      json = "[" <> Enum.join(1..20_000, ",") <> "]"
      assert {:exit_status, 136} = Host.call(host, :nif_decode_init, [json, [bytes_per_iter: 200]])
    end
  end

  describe "standard error" do
    # The program's own goes to a file of the shell's.
    defp start_with_stderr(library, redirection) do
      command = "exec #{Host.path()} #{redirection}"
      start(library, program: "/bin/sh", args: ["-c", command])
    end

    test "is passed on at once, and its end is told", %{library: library, folder: folder} do
      file = Path.join(folder, "stderr")
      host = start_with_stderr(library, "2>#{file}")
      assert {:value, :ok} = Host.call(host, :say, ["first"])
      # The host is alive and says no more.
      assert Await.until(fn -> File.read!(file) == "out first\nerr first\n" end)
      for i <- 1..1000, do: Host.call(host, :say, ["line #{i}"])
      assert {:exit_status, 134} = Host.call(host, :crash_abort, [[]])
      stderr = Host.ended().stderr
      assert byte_size(stderr) == 4096
      assert String.ends_with?(stderr, "out line 1000\nerr line 1000\n")
      all = File.read!(file)
      assert String.ends_with?(all, stderr)
      assert length(String.split(all, "\n", trim: true)) == 2002
    end

    test "that nobody reads holds up neither host nor guard", %{library: library, folder: folder} do
      fifo = Path.join(folder, "fifo")
      {"", 0} = System.cmd("mkfifo", [fifo])
      host = start_with_stderr(library, "2<>#{fifo}")
      line = String.duplicate("x", 60_000)
      for _ <- 1..100, do: assert({:value, :ok} = Host.call(host, :say, [line]))
      guard = host.port |> Port.info(:os_pid) |> elem(1)
      Host.stop(host)
      assert Await.until(fn -> gone?(host, guard) end, 2000)
    end

    test "says why the host gave up", %{library: library} do
      host = start_with_stderr(library, "2>/dev/null")
      Host.tell(host, {:nonsense, 1})
      assert {:exit_status, 70} = Host.wait(host, fn _ -> false end)
      assert %{signal: 0, stderr: "tame_host: a frame of unknown kind 'nonsense'\n"} = Host.ended()
    end
  end

  describe "while the library hangs" do
    test "a ping is answered", %{library: library} do
      host = start(library, args: ["--workers", "1"])
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])

      for n <- [0, 1, 1_000_000_000_000] do
        Host.tell(host, {:ping, n})
        assert {:pong, ^n} = Host.wait(host, &match?({:pong, _}, &1))
      end
    end

    test "the ring gets more workers, up to 64", %{library: library} do
      host = start(library, args: ["--workers", "1"])
      # Without a ring there is nothing to grow.
      alone = threads(host, 1)
      Host.tell(host, {:ring, %{workers: 2}})
      assert {:ring, _fd} = Host.wait(host, &match?({:ring, _}, &1))
      assert threads(host, 0) == alone + 2
      assert threads(host, 1) == alone + 3
      assert threads(host, 100) == alone + 64
    end

    # How many threads the host has when it has been told so often to grow.
    defp threads(host, grow) do
      for _ <- 1..grow//1, do: Host.tell(host, :grow)
      Host.tell(host, {:ping, 1})
      assert {:pong, 1} = Host.wait(host, &match?({:pong, _}, &1))
      length(Path.wildcard("/proc/#{Host.os_pid(host)}/task/*"))
    end
  end

  describe "what a library can do, as the host says it" do
    test "by what it imports", %{library: library, folder: folder} do
      assert %{wants_caller: true, sends: true, resources: true} = start(library).info

      modest =
        compile(folder, "modest", """
        #include <erl_nif.h>
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { (void)argc; return enif_make_copy(env, argv[0]); }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(modest, functions, NULL, NULL, NULL, NULL)
        """)

      host = Host.load!(Host.start(), modest, :modest)
      assert %{wants_caller: false, sends: false, resources: false} = host.info
      assert {:value, 1} = Host.call(host, :f, [1])
    end

    test "of two that import nothing of the API, by whether another library may use it for them",
         %{folder: folder} do
      for {name, body, whether} <- [
            {:calls_nothing, "return argv[0];", false},
            {:calls_others, "others_function(env); return argv[0];", true}
          ] do
        library =
          compile(folder, "#{name}", """
          #include <erl_nif.h>
          void others_function(ErlNifEnv *env) __attribute__((weak));
          static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
          { (void)env; (void)argc; #{body} }
          static ErlNifFunc functions[] = {{"f", 1, f, 0}};
          ERL_NIF_INIT(#{name}, functions, NULL, NULL, NULL, NULL)
          """)

        host = Host.load!(Host.start(), library, name)

        assert {^name, %{wants_caller: ^whether, sends: ^whether, resources: false}} =
                 {name, host.info}
      end
    end

    # As rustler does from 0.35 on.
    test "when it looks up its functions while it runs", %{folder: folder} do
      library =
        compile(folder, "looks_up", """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <erl_nif.h>
        static ERL_NIF_TERM self(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        {
            ErlNifPid pid, *(*own)(ErlNifEnv *, ErlNifPid *);
            (void)argc;
            *(void **)&own = dlsym(RTLD_DEFAULT, "enif_self");
            return own(env, &pid) == NULL ? argv[0] : pid.pid;
        }
        static ErlNifFunc functions[] = {{"self", 1, self, 0}};
        ERL_NIF_INIT(looks_up, functions, NULL, NULL, NULL, NULL)
        """)

      host = Host.load!(Host.start(), library, :looks_up)
      assert %{wants_caller: true, sends: true, resources: false} = host.info
      this = self()
      assert {:value, ^this} = Host.call(host, :self, [:none])
    end
  end

  test "what any thread has sent comes before the reply on the ring", %{library: library} do
    host = start(library)
    Host.tell(host, {:ring, %{}})
    assert {:ring, fd} = Host.wait(host, &match?({:ring, _}, &1))
    {:ok, ring} = :tame_ring.open(Host.os_pid(host), fd, %{})
    this = self()
    Host.asked(:sync)

    for {name, syncs} <- [echo: 0, send_from_thread: 1, echo: 0, send: 1] do
      function = host.functions[{to_string(name), 1}]

      # It waits for the reply, so that this process can answer what the host asks; and then makes
      # the host say that it is done.
      caller =
        Task.async(fn ->
          reply = :tame_ring.call(ring, function, [this, {this, name}], 10_000)
          Host.tell(host, {:ping, 7})
          reply
        end)

      assert {:pong, 7} = Host.wait(host, &match?({:pong, 7}, &1))
      assert {:value, _} = Task.await(caller)
      assert {name, Host.asked(:sync)} == {name, syncs}
      if syncs > 0, do: assert_receive(^name, 0)
    end
  end

  describe "calls at once" do
    test "one NIF waits for another, with two workers", %{library: library} do
      host = start(library, args: ["--workers", "2"])
      Host.cast(host, 1, :wait_for_gate, [[]])
      assert {:value, :ok} = Host.call(host, :open_gate, [[]])
      assert {:value, :opened} = Host.await(host, 1)
    end

    test "one worker keeps the order of calls", %{library: library} do
      host = start(library, args: ["--workers", "1"])
      for id <- 1..100, do: Host.cast(host, id, :echo, [id])
      for id <- 1..100, do: assert({:value, ^id} = Host.await(host, id))
    end

    test "a cancelled call is told", %{library: library} do
      host = start(library)
      Host.cast(host, 7, :hang_until_cancelled, [[]])
      assert {:value, 1} = Host.call(host, :echo, [1])
      Host.tell(host, {:cancel, 7})
      assert {:value, :cancelled} = Host.await(host, 7)
    end
  end

  describe "no orphans" do
    test "the port closes while a call loops with every signal blocked", %{library: library} do
      host = start(library, args: ["--workers", "1"])
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])
      guard = host.port |> Port.info(:os_pid) |> elem(1)
      Host.stop(host)
      assert Await.until(fn -> gone?(host, guard) end, 1000)
    end

    test "the host is stopped, and then the port closes", %{library: library} do
      host = start(library)
      guard = host.port |> Port.info(:os_pid) |> elem(1)
      OsProcess.stop(Host.os_pid(host))
      Host.stop(host)
      assert Await.until(fn -> gone?(host, guard) end, 2000)
    end

    test "the guard is killed", %{library: library} do
      host = start(library)
      guard = host.port |> Port.info(:os_pid) |> elem(1)
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])
      OsProcess.signal(guard, "KILL")
      assert {:exit_status, 137} = Host.await(host, 1)
      assert Await.until(fn -> gone?(host, guard) end, 1000)
    end

    test "the VM is killed", %{library: library} do
      code = """
      alias Tame.Test.Host
      host = Host.load!(Host.start(), #{inspect(library)}, :contract_nif)
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])
      guard = host.port |> Port.info(:os_pid) |> elem(1)
      IO.puts("pids \#{Host.os_pid(host)} \#{guard} \#{System.pid()}")
      Process.sleep(:infinity)
      """

      vm = OsProcess.start_vm(code, [])
      assert_receive {^vm, {:data, {:eol, "pids " <> pids}}}, 20_000
      [host, guard, beam] = String.split(pids)
      OsProcess.signal(beam, "KILL")
      assert Await.until(fn -> Enum.all?([host, guard], &OsProcess.gone?/1) end, 1000)
    end

    test "what the library has started ends with the host, but for a daemon", %{library: library} do
      for how <- [:crash_segv, :crash_kill, :closed] do
        host = start(library)
        assert {:value, [child, daemon]} = Host.call(host, :start_children, [[]])
        assert Await.until(fn -> File.read("/proc/#{daemon}/comm") == {:ok, "sleep\n"} end)
        if how == :closed, do: Host.stop(host), else: Host.call(host, how, [[]])
        assert Await.until(fn -> OsProcess.gone?(child) end, 2000)
        refute OsProcess.gone?(daemon)
        OsProcess.signal(daemon, "KILL")
      end
    end

    test "the host is stopped, and then the guard is killed", %{library: library} do
      host = start(library)
      guard = host.port |> Port.info(:os_pid) |> elem(1)
      OsProcess.stop(Host.os_pid(host))
      OsProcess.signal(guard, "KILL")
      assert Await.until(fn -> gone?(host, guard) end, 2000)
    end

    defp gone?(host, guard), do: Enum.all?([Host.os_pid(host), guard], &OsProcess.gone?/1)
  end

  test "asked to stop, it unloads and ends", %{library: library} do
    host = start(library)
    Host.tell(host, :stop)
    assert {:exit_status, 0} = Host.wait(host, fn _ -> false end)
  end

  test "nothing of the VM's is open in a host", %{library: library} do
    {:ok, listener} = :gen_tcp.listen(0, [])
    host = start(library)

    fds =
      Path.wildcard("/proc/#{Host.os_pid(host)}/fd/*")
      |> Enum.map(&{Path.basename(&1), File.read_link!(&1)})

    :gen_tcp.close(listener)
    assert Enum.find(fds, fn {_, to} -> String.starts_with?(to, "socket:") end) == nil
    # 0, 1, 2 and the two pipes
    assert length(fds) == 5, inspect(fds)
  end

  describe "what is refused" do
    test "a missing file, a text, a program, another module's library", %{library: library} do
      for {path, reason} <- [
            {"/no/such/file.so", :no_such_file},
            {"/etc/passwd", :bad_library},
            {"/", :bad_library},
            {"/bin/sh", :bad_library},
            {to_string(:tame_labs_native.path(~c"tame_echo_nif.so")), :bad_library}
          ] do
        host = Host.start()
        assert {:refused, ^reason, %{}, text} = Host.load(host, path, :contract_nif)
        assert text =~ path
        # It has loaded nothing, and can still load something.
        assert {:ok, _} = Host.load(host, library, :contract_nif) |> or_already(reason, path)
        Host.stop(host)
      end
    end

    # A library of another module is in by the time that is seen.
    defp or_already({:refused, :already_loaded, _, _}, :bad_library, _), do: {:ok, nil}
    defp or_already(result, _, _), do: result

    test "a function that is missing, before any code of the library runs", %{folder: folder} do
      library =
        compile(folder, "needs_select", """
        #include <erl_nif.h>
        #include <stdlib.h>
        __attribute__((constructor)) static void begin(void) { abort(); }
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { (void)argc; enif_select(env, 0, 0, NULL, NULL, argv[0]); return argv[0]; }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(needs_select, functions, NULL, NULL, NULL, NULL)
        """)

      host = Host.start()

      assert {:refused, :missing_functions, %{functions: ["enif_select"]}, text} =
               Host.load(host, library, :needs_select)

      assert text =~ "enif_select"
      assert %{"missing" => ["enif_select"]} = probe(library)
    end

    test "a load that returns an error", %{folder: folder} do
      library =
        compile(folder, "load_fails", """
        #include <erl_nif.h>
        static int load(ErlNifEnv *env, void **p, ERL_NIF_TERM i) { (void)env; (void)p; (void)i; return 42; }
        static ErlNifFunc functions[1];
        ERL_NIF_INIT(load_fails, functions, load, NULL, NULL, NULL)
        """)

      assert {:refused, :load_returned, %{value: 42}, _} =
               Host.load(Host.start(), library, :load_fails)
    end

    test "a newer NIF version, another machine", %{folder: folder, library: library} do
      newer =
        compile(folder, "newer", """
        #include <erl_nif.h>
        ErlNifEntry *nif_init(void)
        {
            static ErlNifFunc functions[1];
            static ErlNifEntry entry = {2, 99, "newer", 0, functions, 0, 0, 0, 0, "beam.vanilla", 1, 0, "erts-99.0"};
            return &entry;
        }
        """)

      assert {:refused, :needs_newer_erts, _, _} = Host.load(Host.start(), newer, :newer)
      <<head::binary-size(18), _::16, tail::binary>> = File.read!(library)
      foreign = Path.join(folder, "foreign.so")
      File.write!(foreign, <<head::binary, 0xF00D::16, tail::binary>>)
      assert {:refused, :wrong_architecture, _, _} = Host.load(Host.start(), foreign, :contract_nif)
      assert %{"error" => %{"reason" => "wrong_architecture"}} = probe(foreign)
    end
  end

  describe "--probe" do
    test "lists functions, flags, callbacks and imports", %{library: library} do
      probe = probe(library)
      assert probe["module"] == "contract_nif"
      assert probe["nif_version"] =~ ~r/^2\.\d+$/
      assert probe["min_erts"] =~ "erts-"

      assert probe["callbacks"] == %{
               "load" => true,
               "reload" => false,
               "upgrade" => false,
               "unload" => true
             }

      assert %{"name" => "echo", "arity" => 1, "flags" => 0} in probe["functions"]
      assert %{"name" => "thread_types_dirty_io", "arity" => 1, "flags" => 2} in probe["functions"]
      assert "enif_schedule_nif" in probe["imports"]
      assert probe["missing"] == []
    end

    test "says how a library died that does so when it is opened", %{folder: folder} do
      for {name, does, expected} <- [
            {"dies", "kill(getpid(), SIGSEGV);", %{"signal" => "SIGSEGV"}},
            {"leaves", "_exit(3);", %{"exit_status" => 3}}
          ] do
        library =
          compile(folder, name, """
          #include <signal.h>
          #include <unistd.h>
          __attribute__((constructor)) static void begin(void) { #{does} }
          void *nif_init(void) { return 0; }
          """)

        assert expected == Map.take(probe(library), ["signal", "exit_status"])
      end
    end

    test "every NIF library of this OTP" do
      for path <- Path.wildcard("#{:code.lib_dir()}/*/priv/**/*.so") do
        assert %{"file" => ^path} = probe(path)
      end
    end

    test "a missing file, a text, wrong arguments" do
      assert %{"error" => %{"reason" => "no_such_file"}} = probe("/no/such/file.so")
      assert %{"error" => %{"reason" => "bad_library"}} = probe("/etc/passwd")
      assert {_, 2} = System.cmd(Host.path(), ["--probe"], stderr_to_stdout: true)
      assert {text, 2} = System.cmd(Host.path(), ["--workers", "0"], stderr_to_stdout: true)
      assert text =~ "1 to 1024"
    end
  end

  # A newer header has more functions; the page is that of the oldest OTP that is supported.
  if System.otp_release() == "25" do
    @tag :reference
  else
    @tag skip: "the page is OTP 25's"
  end

  test "docs/reference/host_api.md is what enif_api.def says" do
    {table, 0} = System.cmd(Host.path(), ["--api"])
    page = Path.join(:tame.source_dir(), "docs/reference/host_api.md")
    assert File.read!(page) == table, "run: #{Host.path()} --api > docs/reference/host_api.md"
  end

  test "a function of a newer header that is not listed fails the build, by its name", %{
    folder: folder
  } do
    include = Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
    newer = Path.join(folder, "include")
    File.cp_r!(include, newer)
    header = Path.join(newer, "erl_nif_api_funcs.h")
    mark = "/*\n** ADD NEW ENTRIES HERE"
    text = File.read!(header)
    assert text =~ mark
    added = "ERL_NIF_API_FUNC_DECL(int,enif_of_tomorrow,(ErlNifEnv*));\n"
    File.write!(header, String.replace(text, mark, added <> mark))
    host = Path.join(:tame.source_dir(), "c_src/host")
    source = Path.join(host, "life/api.c")

    build = fn folder ->
      System.cmd(
        "cc",
        ~w(-std=gnu11 -Wall -fsyntax-only -iquote #{host} -isystem #{folder} #{source}),
        stderr_to_stdout: true
      )
    end

    assert {"", 0} = build.(include)
    assert {output, 1} = build.(newer)
    assert output =~ "LISTED_enif_of_tomorrow"
  end

  test "--help says all" do
    {text, 0} = System.cmd(Host.path(), ["--help"])
    assert text =~ "--probe" and text =~ "--workers"
  end

  # One line of JSON as a term: it has no syntax that Erlang's does not have, but for the colons.
  defp probe(path) do
    {line, 0} = System.cmd(Host.path(), ["--probe", path])

    text =
      line |> String.replace("null", ":null") |> String.replace(~r/"([a-z_]+)":/, "\"\\1\" => ")

    {term, _} = text |> String.replace("{", "%{") |> Code.eval_string()
    term
  end

  defp compile(folder, name, source) do
    File.write!(Path.join(folder, name <> ".c"), source)
    assert {"", 0} = CLibrary.compile(folder, name <> ".c", ["-Wno-unused-function", "-std=gnu11"])
    Path.join(folder, name <> ".so")
  end
end
