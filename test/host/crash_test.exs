defmodule Tame.Host.CrashTest do
  # What is told of a library that dies: exit status, signal, place, what it wrote. c_src/host/life.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{CLibrary, Contract, Host, OsProcess}

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{library: Contract.build(folder), folder: folder}
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
        host = Contract.start(library)
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
        host = Contract.start(library)
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

    test "the longest name there is, which is Latin-1", %{folder: folder} do
      library =
        CLibrary.nif!(folder, "latin_crash", """
        #include <erl_nif.h>
        #include <stdlib.h>
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { (void)env; (void)argc; (void)argv; abort(); }
        static ErlNifFunc functions[] = {{"#{String.duplicate("\\xe5", 255)}", 0, f, 0}};
        ERL_NIF_INIT(latin_crash, functions, NULL, NULL, NULL, NULL)
        """)

      host = Host.load!(Host.start(), library, :latin_crash)
      name = String.duplicate("å", 255)
      assert {:exit_status, 134} = Host.call(host, name, [])
      assert %{function: {^name, 0}} = Host.ended()
    end

    test "a thread of the library's own: no function, but the place", %{library: library} do
      for {name, frame} <- [crash_thread: "contract_faults", crash_thread_stack: "contract_nif.so"] do
        host = Contract.start(library)
        assert {:exit_status, 139} = Host.call(host, name, [[]])
        assert %{signal: 11, function: {"", 0}, backtrace: backtrace} = Host.ended()
        assert backtrace =~ frame
      end
    end

    test "twenty threads at once, a stack that is gone: the signal stays", %{library: library} do
      for name <- [:crash_many, :crash_without_stack] do
        host = Contract.start(library)
        assert {:exit_status, 139} = Host.call(host, name, [[]])
        assert %{signal: 11} = Host.ended()
      end
    end

    test "what is no crash leaves no record", %{library: library} do
      for {name, status, signal} <-
            [crash_exit: {23, 0}, crash_kill: {137, 9}]
            |> Enum.map(fn {n, {st, si}} -> {n, st, si} end) do
        host = Contract.start(library)
        assert {:value, 11} = Host.call(host, :crash_of_child, [[]])
        assert {:exit_status, ^status} = Host.call(host, name, [[]])

        assert Host.ended() == %{
                 signal: signal,
                 address: 0,
                 function: {"", 0},
                 backtrace: "",
                 stderr: "",
                 limit: :none
               }
      end
    end

    test "the guard passes on what a host forges, with bounds of its own", %{library: library} do
      host = Contract.start(library)
      assert {:exit_status, 137} = Host.call(host, :forge_record, [[]])
      ended = Host.ended()
      assert {9, 0xFFFF_FFFF_FFFF_FFFF} = {ended.signal, ended.address}
      assert {String.duplicate(<<255>>, 510), 255} == ended.function
      assert byte_size(ended.backtrace) == 8192
    end

    test "signals that are sent: no address", %{folder: folder} do
      library =
        CLibrary.nif!(folder, "raises", """
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

    test "a resource that is released too often: it is said in words", %{folder: folder} do
      library =
        CLibrary.nif!(folder, "releases", """
        #include <erl_nif.h>
        static ErlNifResourceType *type;
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        {
            void *object = enif_alloc_resource(type, 1);
            ERL_NIF_TERM made = enif_make_resource(env, object);
            int times;
            (void)argc; enif_get_int(env, argv[0], &times);
            enif_keep_resource(object);
            while (times-- > 0) enif_release_resource(object);
            return made;
        }
        static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
        {
            (void)data; (void)info;
            type = enif_open_resource_type(env, NULL, "parser", NULL, ERL_NIF_RT_CREATE, NULL);
            return type == NULL;
        }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(releases, functions, load, NULL, NULL, NULL)
        """)

      host = Host.load!(Host.start(), library, :releases)
      assert {:value, made} = Host.call(host, :f, [2])
      assert is_reference(made)
      assert {:exit_status, 70} = Host.call(host, :f, [3])

      assert Host.ended().stderr =~
               "the library released a resource of type parser once more than it had kept it"
    end

    # What names the places in a backtrace waits for a lock that another thread never gives back.
    test "a record that cannot be finished: the signal stays", %{folder: folder} do
      stuck =
        CLibrary.nif!(folder, "stuck", """
        #include <unistd.h>
        __attribute__((constructor)) static void begin(void)
        { (void)!write(9, "x", 1); for (;;) pause(); }
        """)

      library =
        CLibrary.nif!(folder, "faults_then", """
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
        CLibrary.nif!(folder, "handles", """
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
      Contract.start(library, program: "/bin/sh", args: ["-c", command])
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
      guard = Host.guard(host)
      Host.stop(host)
      assert Await.until(fn -> Host.gone?(host, guard) end)
    end

    test "says why the host gave up", %{library: library} do
      host = start_with_stderr(library, "2>/dev/null")
      Host.tell(host, {:nonsense, 1})
      assert {:exit_status, 70} = Host.wait(host, fn _ -> false end)
      assert %{signal: 0, stderr: "tame_host: a frame of unknown kind 'nonsense'\n"} = Host.ended()
    end
  end
end
