defmodule Tame.Host.RefusalTest do
  # What a host refuses to load, and what it and --probe say of a library. c_src/host/life.
  use ExUnit.Case, async: true

  alias Tame.Test.{CLibrary, Contract, Host, OsProcess}

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{library: Contract.build(folder), folder: folder}
  end

  describe "what a library can do, as the host says it" do
    test "by what it imports", %{library: library, folder: folder} do
      assert %{wants_caller: true, sends: true, resources: true} = Contract.start(library).info

      modest =
        CLibrary.nif!(folder, "modest", """
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
          CLibrary.nif!(folder, "#{name}", """
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
        CLibrary.nif!(folder, "looks_up", """
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
        CLibrary.nif!(folder, "needs_more", """
        #include <erl_nif.h>
        #include <stdlib.h>
        extern ERL_NIF_TERM enif_of_tomorrow(ErlNifEnv *env, ERL_NIF_TERM term);
        __attribute__((constructor)) static void begin(void) { abort(); }
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { (void)argc; return enif_of_tomorrow(env, argv[0]); }
        static ErlNifFunc functions[] = {{"f", 1, f, 0}};
        ERL_NIF_INIT(needs_more, functions, NULL, NULL, NULL, NULL)
        """)

      host = Host.start()

      assert {:refused, :missing_functions, %{functions: ["enif_of_tomorrow"]}, text} =
               Host.load(host, library, :needs_more)

      assert text =~ "enif_of_tomorrow"
      assert %{"missing" => ["enif_of_tomorrow"]} = probe(library)
    end

    test "a symbol of the emulator that no library uses, in the loader's words", %{folder: folder} do
      library =
        CLibrary.nif!(folder, "needs_driver", """
        #include <erl_nif.h>
        extern long driver_mk_atom(char *name);
        static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
        { (void)argc; (void)argv; return enif_make_long(env, driver_mk_atom("a")); }
        static ErlNifFunc functions[] = {{"f", 0, f, 0}};
        ERL_NIF_INIT(needs_driver, functions, NULL, NULL, NULL, NULL)
        """)

      text = library <> ": undefined symbol: driver_mk_atom"
      assert {:refused, :bad_library, _, ^text} = Host.load(Host.start(), library, :needs_driver)
      assert %{"error" => %{"reason" => "bad_library", "text" => ^text}} = probe(library)
    end

    test "a load that returns an error", %{folder: folder} do
      library =
        CLibrary.nif!(folder, "load_fails", """
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
        CLibrary.nif!(folder, "newer", """
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
          CLibrary.nif!(folder, name, """
          #include <signal.h>
          #include <unistd.h>
          __attribute__((constructor)) static void begin(void) { #{does} }
          void *nif_init(void) { return 0; }
          """)

        assert expected == Map.take(probe(library), ["signal", "exit_status"])
      end
    end

    test "does not wait for what a library has left behind, and leaves none of it", %{
      folder: folder
    } do
      library =
        CLibrary.nif!(folder, "daemon", """
        #include <erl_nif.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
        {
            (void)env; (void)priv_data; (void)info;
            pid_t child = fork();
            if (child == 0) {
                setsid();
                pid_t daemon = fork();
                if (daemon == 0)
                    for (;;) pause();
                FILE *file = fopen("#{folder}/daemon.pid", "w");
                fprintf(file, "%d", (int)daemon);
                fclose(file);
                _exit(0);
            }
            waitpid(child, NULL, 0);
            return 0;
        }
        static ErlNifFunc functions[] = {{"f", 0, NULL, 0}};
        ERL_NIF_INIT(daemon, functions, load, NULL, NULL, NULL)
        """)

      {us, probe} = :timer.tc(fn -> probe(library) end)
      assert %{"module" => "daemon", "resources" => []} = probe
      # Its limit is 10 s.
      assert us < 5_000_000
      OsProcess.await_gone(folder |> Path.join("daemon.pid") |> File.read!())
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
end
