defmodule Tame.ApplicationScenarios do
  @moduledoc """
  What comes of the application tame, of its configuration and of arguments that are none, in a throw-away emulator. Each
  function returns what was seen.
  """

  @compile {:no_warn_undefined, :places_from_vm}

  import Tame.ProcessScenarios

  alias Tame.Await
  alias Tame.Test.{CLibrary, Places}

  @doc "A library that its application loads, before and after isolation; then restored."
  def loaded_later(bind) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places_app
    Places.build!(module, loads: :later)
    vm = String.to_integer(System.pid())
    :ok = module.start()
    in_vm = module.pause_ms(0) == vm
    isolated = :tame.isolate(module, %{bind: bind})
    in_host = outcome(fn -> module.pause_ms(0) != vm end)
    restored = :tame.restore(module)
    {in_vm, isolated, in_host, restored, outcome(fn -> module.pause_ms(0) == vm end)}
  end

  @doc """
  Isolated before its application loads the library, with what only that knows; then restored and isolated again, several
  times: where each call ran, what the library had been given, and whether its file was mapped in the VM; before that,
  whether the library knew who loaded it.
  """
  def in_turns(bind, stripped?, info) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places_turns
    Places.build!(module, loads: :given, stripped: stripped?)
    :ok = :tame.isolate(module, %{bind: bind})
    :ok = module.start(info)
    before = where(module)
    loader = module.loader(0)

    turns =
      for _ <- 1..3 do
        {:tame.restore(module), where(module), :tame.isolate(module, %{bind: bind}), where(module)}
      end

    [loader == self(), before | turns]
  end

  defp where(module) do
    os_pid = outcome(fn -> module.pause_ms(0) end)
    place = if os_pid == {:ok, String.to_integer(System.pid())}, do: :vm, else: :host
    {place, outcome(fn -> module.given(0) end), mapped?(module)}
  end

  defp mapped?(module), do: File.read!("/proc/self/maps") =~ "/#{module}.so"

  @doc """
  Loaded by its application with what only that knows, before it is isolated: the refusal, and how it is then; the same
  of code that was loaded anew, without its library.
  """
  def given_in_vm(info) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places_given
    Places.build!(module, loads: :given)
    :ok = module.start(info)
    refused = :tame.isolate(module)
    as_before = where(module)
    true = :code.delete(module)
    _ = :code.purge(module)
    {:module, ^module} = :code.ensure_loaded(module)
    true = in_vm?(module)
    isolated = :tame.isolate(module)
    unloaded = outcome(fn -> module.given(0) end)
    :ok = module.start(info)
    {refused, as_before, isolated, unloaded, where(module)}
  end

  @doc """
  A library that its application has loaded in the VM, with a constant: isolated and restored in turns, where each call ran.
  """
  def in_turns_from_vm(bind) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places_from_vm
    Places.build!(module, loads: :later)
    :ok = module.start()
    before = where(module)

    turns =
      for _ <- 1..3 do
        {:tame.isolate(module, %{bind: bind}), where(module), :tame.restore(module), where(module)}
      end

    [before | turns]
  end

  @doc """
  A library without functions that its application loads with what only that knows: the refusal, and what comes of the same code
  loaded anew, isolated twice.
  """
  def without_functions do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :no_functions
    source = Path.expand("natives/no_functions_nif.c", __DIR__)

    folder =
      CLibrary.module!(module, source, """
      -module(no_functions).
      -export([start/1]).
      start(Info) -> erlang:load_nif(filename:rootname(code:which(?MODULE)), Info).
      """)

    library = Path.join(folder, "no_functions.so")
    :ok = module.start({:given, self()})
    refused = :tame.isolate(module, %{library: library})
    true = :code.delete(module)
    _ = :code.purge(module)
    {:module, ^module} = :code.ensure_loaded(module)
    true = in_vm?(module)

    turns = for _ <- 1..2, do: {:tame.isolate(module, %{library: library}), :tame.restore(module)}

    {refused, turns}
  end

  @doc """
  Code of an isolated module deleted, or loaded in the place of what was bound: its phase, what the log has of it, where a
  call of it runs; and of all but the log, when it has been restored and isolated again.
  """
  def replaced(how) do
    Process.register(self(), :report_test)
    module = start()
    :ok = :logger.set_primary_config(:level, :error)
    :ok = :logger.add_handler(:report_test, __MODULE__, %{})
    :ok = :logger.remove_handler(:default)
    before = {phase(module), mapped?(module)}
    _ = :code.purge(module)

    if how == :deleted,
      do: true = :code.delete(module),
      else: {:module, _} = :code.load_file(module)

    now = phase(module)
    _ = :code.purge(module)
    said = heard([])
    calls_vm? = outcome(fn -> module.pause_ms(0) end) == {:ok, String.to_integer(System.pid())}
    again = {:tame.restore(module), :tame.isolate(module), phase(module)}
    # The code that had the library in the VM is purged a moment later.
    true = Await.until(fn -> not mapped?(module) end)
    %{answers: true} = well?(module)
    {before, now, calls_vm?, said, again}
  end

  defp phase(module), do: :tame.info()[module].phase

  @doc "The application tame stopped, started, and the module isolated again."
  def stopped_application do
    module = start()
    :ok = Application.stop(:tame)
    stopped = {outcome(fn -> module.pause_ms(0) end), in_vm?(module)}
    {:ok, _} = Application.ensure_all_started(:tame)
    started = {outcome(fn -> module.pause_ms(0) end), in_vm?(module)}
    :ok = :tame.isolate(module)
    {stopped, started, well?(module)}
  end

  @doc """
  The application tame stopped and started that often under callers of a module that its configuration isolates: what their
  calls came to that is neither an answer of a host nor says that tame does not run.
  """
  def stopped_under_callers(rounds) do
    modules = for n <- 1..3, do: :"places_#{n}"
    for module <- modules, do: Places.build!(module)
    Application.load(:tame)
    Application.put_env(:tame, :isolate, modules)
    {:ok, _} = Application.ensure_all_started(:tame)
    vm = String.to_integer(System.pid())

    callers =
      for module <- modules, _ <- 1..8, do: Task.async(fn -> odd_until_told(module, vm, []) end)

    for _ <- 1..rounds do
      for module <- modules, do: true = module.pause_ms(0) != vm
      :ok = Application.stop(:tame)
      {:ok, _} = Application.ensure_all_started(:tame)
    end

    for %{pid: pid} <- callers, do: send(pid, :enough)
    callers |> Task.await_many(600_000) |> Enum.concat() |> Enum.uniq()
  end

  defp odd_until_told(module, vm, odd) do
    receive do
      :enough -> odd
    after
      0 ->
        case outcome(fn -> module.pause_ms(0) end) do
          {:ok, os_pid} when os_pid != vm ->
            odd_until_told(module, vm, odd)

          {:error, {:tame, {reason, _}}} when reason in [:not_started, :restored] ->
            odd_until_told(module, vm, odd)

          other ->
            odd_until_told(module, vm, Enum.uniq([other | odd]))
        end
    end
  end

  @doc "The application tame stopped while calls of that many ms are under way in several groups: what they came to, and the s."
  def stopped_in_calls(ms) do
    modules = for n <- 1..5, do: :"places_#{n}"
    for module <- modules, do: Places.build!(module)
    {:ok, _} = Application.ensure_all_started(:tame)
    for module <- modules, do: :ok = :tame.isolate(module)
    calls = for module <- modules, do: Task.async(fn -> outcome(fn -> module.pause_ms(ms) end) end)
    true = Await.until(fn -> Enum.all?(modules, &(in_use(&1) == 1)) end)
    {us, :ok} = :timer.tc(fn -> Application.stop(:tame) end)
    answers = for {kind, answer} <- Task.await_many(calls, 600_000), do: {kind, is_integer(answer)}
    {Enum.uniq(answers), us / 1.0e6}
  end

  @doc "What application:start comes to with this configuration, whether tame runs then, and whether jiffy is in the VM."
  def configured(isolate) do
    :logger.set_primary_config(:level, :none)
    Application.load(:tame)
    Application.put_env(:tame, :isolate, isolate)
    started = Application.ensure_all_started(:tame)
    answer = outcome(fn -> :jiffy.decode("[1]") end)
    {started, is_pid(Process.whereis(:tame_sup)), answer, in_vm?(:jiffy)}
  end

  @doc "Arguments that are none, and what they change."
  def bad_arguments do
    module = start()

    answers =
      for bad <- ["jiffy", ~c"jiffy", {:jiffy, 1}, 7],
          do: {bad, :tame.isolate(bad), :tame.restore(bad), :tame.restart(bad)}

    {answers, well?(module), outcome(fn -> module.load(:badarg, 0) end),
     outcome(fn -> module.load(~c"/x", 0) end)}
  end

  @doc "What the log has of a host that dies of a signal again and again, and in how many seconds."
  def reports do
    {:ok, _} = Application.ensure_all_started(:tame)
    Process.register(self(), :report_test)
    :ok = :logger.add_handler(:report_test, __MODULE__, %{})
    :ok = :logger.remove_handler(:default)
    :ok = :tame.isolate(:jiffy, %{backoff_ms: {0, 0}, intensity: :infinity})
    json = "[" <> Enum.map_join(1..20_000, ",", &Integer.to_string/1) <> "]"
    crash = fn -> outcome(fn -> :jiffy.decode(json, bytes_per_iter: 200) end) end

    {us, _} =
      :timer.tc(fn ->
        for _ <- 1..20, do: crash.()
        Process.sleep(1100)
        crash.()
        {:ok, _} = outcome(fn -> :jiffy.decode("[1]") end)
      end)

    {heard([]), div(us, 1_000_000)}
  end

  defp heard(texts) do
    receive do
      {:report, text} -> heard([text | texts])
    after
      3000 -> Enum.reverse(texts)
    end
  end

  # A handler of logger.
  def log(%{msg: {:report, report}, meta: %{report_cb: format}}, _config) do
    {text, args} = format.(report)
    send(:report_test, {:report, to_string(:io_lib.format(text, args))})
  end

  def log(%{level: :error, msg: {text, args}}, _config) when is_list(args),
    do: send(:report_test, {:report, to_string(:io_lib.format(text, args))})

  def log(_event, _config), do: :ok
end
