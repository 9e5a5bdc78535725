defmodule Tame.Host.LifeTest do
  # How a host begins and ends: refusals, crashes, hangs, orphans. c_src/host/load.c, guard.c,
  # control.c, worker.c.
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

    @tag needs: :jiffy
    test "jiffy 1.1.1 divides by zero, in the host only" do
      host = Host.load!(Host.start(), Host.library!(:jiffy, "jiffy"), :jiffy)
      json = "[" <> Enum.join(1..20_000, ",") <> "]"
      assert {:exit_status, 136} = Host.call(host, :nif_decode_init, [json, [bytes_per_iter: 200]])
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
            {to_string(:tame_native.path(~c"tame_echo_nif.so")), :bad_library}
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
    source = Path.join(:tame.source_dir(), "c_src/host/api.c")

    build = fn folder ->
      System.cmd("cc", ~w(-std=gnu11 -Wall -fsyntax-only -isystem #{folder} #{source}),
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
