defmodule Tame.Test.Host do
  @moduledoc false
  # Drives tame_host over its control port, as the runtime does: answers what the host asks while it
  # waits for a reply. Everything happens in the calling process, which owns the port.

  alias __MODULE__

  defstruct [:port, :functions, :info, :hello]

  @reply_ms 20_000
  @leases 32

  # TAME_TEST_HOST names another program: one with sanitizers (make test-sanitized).
  def path, do: System.get_env("TAME_TEST_HOST", to_string(:tame_native.path(~c"tame_host")))

  # A host with nothing loaded. It ends with the calling process, or by stop/1.
  def start(options \\ []) do
    env = for {name, value} <- Keyword.get(options, :env, []), do: {~c"#{name}", ~c"#{value}"}

    port =
      Port.open({:spawn_executable, Keyword.get(options, :program, path())}, [
        :nouse_stdio,
        :binary,
        :exit_status,
        packet: 4,
        args: Keyword.get(options, :args, []),
        env: env
      ])

    {:hello, 4, os_pid, info} = receive_frame(port)
    host = %Host{port: port, info: info, hello: os_pid}
    tell(host, {:node, node(), :erlang.system_info(:creation)})
    host
  end

  def os_pid(%Host{hello: os_pid}), do: os_pid

  # The OS process of its guard, for as long as the port is open.
  def guard(%Host{port: port}), do: port |> Port.info(:os_pid) |> elem(1)

  def gone?(%Host{hello: os_pid}, guard),
    do: Enum.all?([os_pid, guard], &Tame.Test.OsProcess.gone?/1)

  # {:ok, host} or {:refused, reason, details, text}.
  def load(%Host{} = host, library, module, load_info \\ 0, more \\ %{}) do
    settings = settings() |> Map.put(:library, 0) |> Map.merge(more)
    tell(host, {:load, IO.iodata_to_binary(library), module, load_info, settings})

    case wait(host, &match?({kind, _, _} when kind in [:loaded], &1), &refused?/1) do
      {:loaded, functions, info} ->
        names = functions |> Enum.with_index() |> Map.new(fn {{n, a, _}, i} -> {{n, a}, i} end)
        {:ok, %Host{host | functions: names, info: Map.put(info, :table, functions)}}

      refused ->
        refused
    end
  end

  def load!(host, library, module, load_info \\ 0) do
    {:ok, host} = load(host, library, module, load_info)
    host
  end

  defp refused?(frame), do: match?({:refused, _, _, _}, frame)

  def settings do
    %{
      otp_release: to_string(:erlang.system_info(:otp_release)),
      erts: to_string(:erlang.system_info(:version)),
      schedulers: :erlang.system_info(:schedulers),
      async_threads: :erlang.system_info(:thread_pool_size),
      time_offset_ns: :erlang.time_offset(:nanosecond),
      monotonic_offset_ns: :erlang.monotonic_time(:nanosecond) - :os.perf_counter(:nanosecond)
    }
  end

  # A call whose list of arguments is these bytes of external format, as another VM would write it.
  def call_encoded(%Host{port: port} = host, name, args) do
    id = System.unique_integer([:positive])
    function = Map.fetch!(host.functions, {to_string(name), length(args)})
    args = if host.info.wants_caller, do: [encode(self()) | args], else: args
    list = [<<108, length(args)::32>>, args, 106]
    Port.command(port, [<<131, 104, 4>>, Enum.map([:call, id, function], &encode/1), list])
    await(host, id)
  end

  # Without the version byte.
  def encode(term) do
    <<131, bytes::binary>> = :erlang.term_to_binary(term)
    bytes
  end

  # {:value, term}, {:raise, reason} or {:exit_status, status}.
  def call(host, name, args) do
    id = System.unique_integer([:positive])
    cast(host, id, name, args)
    await(host, id)
  end

  # {result, leases}: the ids that the reply names for the first time.
  def call_with_leases(host, name, args) do
    id = System.unique_integer([:positive])
    cast(host, id, name, args)
    {:reply, ^id, result, leases} = wait(host, &match?({:reply, ^id, _, _}, &1))
    {result, leases}
  end

  def cast(%Host{} = host, id, name, args) do
    function = Map.fetch!(host.functions, {to_string(name), length(args)})
    args = if host.info.wants_caller, do: [self() | args], else: args
    tell(host, {:call, id, function, args})
  end

  def await(host, id) do
    {earlier, rest} =
      Enum.split_with(Process.get({Host, :kept}, []), &match?({:reply, ^id, _, _}, &1))

    Process.put({Host, :kept}, rest)

    case List.first(earlier) || wait(host, &match?({:reply, ^id, _, _}, &1)) do
      {:reply, _, :badarg, _} -> {:raise, :badarg}
      {:reply, _, result, _} -> result
      ended -> ended
    end
  end

  # How the host ended, as its guard said it before {:exit_status, _} came; nil: it said nothing.
  def ended do
    with {:ended, signal, address, function, arity, backtrace, stderr, limit} <-
           Process.get({Host, :ended}) do
      %{
        signal: signal,
        address: address,
        function: {function, arity},
        backtrace: backtrace,
        stderr: stderr,
        limit: limit
      }
    end
  end

  # What it was asked since it was last asked this.
  def asked(what), do: Process.put({Host, :asked, what}, 0) || 0

  def tell(%Host{port: port}, term), do: Port.command(port, :erlang.term_to_binary(term))

  # The port's end closes; the host must end by itself.
  def stop(%Host{port: port}) do
    Port.close(port)
    :ok
  catch
    :error, :badarg -> :ok
  end

  # Takes frames until one is wanted; others are kept for await/2.
  def wait(%Host{port: port} = host, wanted?, also? \\ fn _ -> false end) do
    case receive_frame(port) do
      {:query, id, what} ->
        Process.put({Host, :asked, what}, Process.get({Host, :asked, what}, 0) + 1)
        frames = [{:answer, id, answer(host, what)}]

        # A test may want the VM to say just then what it has collected.
        frames =
          case {what, Process.get({Host, :gone_at_hold})} do
            {{:hold, _, _}, [_ | _] = ids} -> [{:gone, ids} | frames]
            _ -> frames
          end

        # A test may want a monitored process to end at a certain moment.
        frames =
          case {what, Process.get({Host, :down})} do
            {{:monitor, monitor, _}, :before} -> [{:down, monitor} | frames]
            {{:monitor, monitor, _}, :after} -> frames ++ [{:down, monitor}]
            _ -> frames
          end

        Enum.each(frames, &tell(host, &1))
        wait(host, wanted?, also?)

      {:send, pid, message, _leases} ->
        send(pid, message)
        wait(host, wanted?, also?)

      # The guard's word on how the host ended; its exit status follows.
      {:ended, _, _, _, _, _, _, _} = ended ->
        Process.put({Host, :ended}, ended)
        wait(host, wanted?, also?)

      {:exit_status, _} = ended ->
        ended

      frame ->
        if wanted?.(frame) or also?.(frame) do
          frame
        else
          Process.put({Host, :kept}, [frame | Process.get({Host, :kept}, [])])
          wait(host, wanted?, also?)
        end
    end
  end

  defp receive_frame(port) do
    receive do
      {^port, {:data, frame}} -> :erlang.binary_to_term(frame)
      {^port, {:exit_status, status}} -> {:exit_status, status}
    after
      @reply_ms -> raise "the host says nothing for #{@reply_ms} ms"
    end
  end

  # What a VM answers. Leases are references with something behind them, as the runtime's are.
  defp answer(_host, {:existing_atom, name}), do: atom_exists?(name)

  defp answer(_host, {:new_atoms, names}) do
    if Process.get({Host, :no_atoms}), do: false, else: Enum.each(names, &String.to_atom/1)
  end

  defp answer(_host, {:phash2, term}), do: :erlang.phash2(term)
  defp answer(_host, {:flat_size, term}), do: :erts_debug.flat_size(term)
  defp answer(_host, {:alive, pid}) when is_pid(pid), do: Process.alive?(pid)
  defp answer(_host, {:alive, port}), do: Port.info(port) != nil
  defp answer(_host, :sync), do: :ok
  defp answer(_host, :make_ref), do: make_ref()
  defp answer(_host, {:unique_integer, options}), do: :erlang.unique_integer(options)

  # A test that lets leases go puts their ids here: the VM has collected them.
  defp answer(_host, {:hold, _call, refs}) do
    lent = for {id, ref} <- List.flatten(Process.get(:leases, [])), ref in refs, do: id
    held = lent -- Process.get({Host, :collected}, [])
    Process.put({Host, :holds}, Process.get({Host, :holds}, 0) + 1)
    held
  end

  defp answer(_host, {:whereis, name}) do
    if atom_exists?(name), do: :erlang.whereis(String.to_existing_atom(name)), else: :undefined
  end

  defp answer(_host, {:port_command, port, data}) do
    :erlang.port_command(port, data)
  rescue
    ArgumentError -> false
  end

  defp answer(_host, {:monitor, id, pid}) do
    ref = Process.monitor(pid)
    Process.put({Host, id}, ref)
    Process.alive?(pid) && ref
  end

  defp answer(_host, {:demonitor, id}) do
    Process.demonitor(Process.delete({Host, id}), [:flush])
  end

  defp answer(host, :leases) do
    leases = for _ <- 1..@leases, do: {System.unique_integer([:positive]), :atomics.new(1, [])}
    # As long as the test runs, nobody collects them.
    Process.put(:leases, [leases | Process.get(:leases, [])])
    tell(host, {:leases, leases})
    :ok
  end

  # A process that the library monitors has ended: tells the host.
  def tell_down(host, monitor_ref) do
    {{Host, id}, _} = Enum.find(Process.get(), &match?({{Host, _}, ^monitor_ref}, &1))
    tell(host, {:down, id})
  end

  defp atom_exists?(name) do
    String.to_existing_atom(name)
    true
  rescue
    ArgumentError -> false
  end

  # The shared library of an application's, installed with OTP or beside it.
  def library!(app, name) do
    app |> :code.priv_dir() |> to_string() |> Path.join("**/#{name}.so") |> Path.wildcard() |> hd()
  end
end
