defmodule Tame.LibraryScenarios do
  @moduledoc """
  What real libraries are for, done in a throw-away emulator with the library in the VM or isolated: each function returns
  what was seen, which is the same in both.
  """

  @doc "Before anything else: the module isolated, or in the VM as it is."
  def prepare(module, application, where) do
    :logger.set_primary_config(:level, :none)

    if where == :isolated do
      {:ok, _} = Application.ensure_all_started(:tame)
      :ok = :tame.isolate(module)
    end

    {:ok, _} = Application.ensure_all_started(application)
    {:module, _} = Code.ensure_loaded(module)
    where == :isolated or module.module_info(:nifs) != []
  end

  # ---- fast_tls: two sides of a connection -----------------------------------------------------------

  @doc "Sessions at once, each of which sends these sizes there and back; and one that does not speak TLS."
  def tls(certificate, sizes, sessions) do
    {:ok, listener} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(listener)
    server = spawn_link(fn -> accept(listener, certificate) end)

    told =
      1..sessions
      |> Enum.map(fn _ -> Task.async(fn -> client(port, sizes) end) end)
      |> Task.await_many(600_000)
      |> Enum.uniq()

    {:ok, raw} = connect(port)
    :ok = :gen_tcp.send(raw, "GET / HTTP/1.0\r\n\r\n" <> :binary.copy("no record", 100))
    refused = closed?(raw)
    Process.unlink(server)
    Process.exit(server, :kill)
    {told, refused}
  end

  defp accept(listener, certificate) do
    {:ok, socket} = :gen_tcp.accept(listener)

    echo =
      spawn(fn ->
        receive do: (:yours -> :ok)
        {:ok, tls} = :fast_tls.tcp_to_tls(socket, [{:certfile, certificate}, :verify_none])
        echo(tls, "")
      end)

    :ok = :gen_tcp.controlling_process(socket, echo)
    send(echo, :yours)
    accept(listener, certificate)
  end

  # A message is its size in four bytes, then that many.
  defp echo(tls, <<size::32, data::binary-size(size), rest::binary>>) do
    :ok = :fast_tls.send(tls, [<<size::32>>, data])
    echo(tls, rest)
  end

  defp echo(tls, held) do
    case :fast_tls.recv(tls, 0, 20_000) do
      {:ok, more} -> echo(tls, held <> more)
      {:error, _} -> :fast_tls.close(tls)
    end
  end

  defp connect(port), do: :gen_tcp.connect({127, 0, 0, 1}, port, [:binary, active: false])

  defp client(port, sizes) do
    {:ok, socket} = connect(port)
    {:ok, tls} = :fast_tls.tcp_to_tls(socket, [:connect, :verify_none])

    back =
      for size <- sizes do
        data = :binary.copy("0123456789abcdef", div(size, 16) + 1) |> binary_part(0, size)
        :ok = :fast_tls.send(tls, [<<size::32>>, data])
        {size, received(tls, size + 4, "") == <<size::32, data::binary>>}
      end

    {:ok, certificate} = :fast_tls.get_peer_certificate(tls, :der)
    cipher = :fast_tls.get_negotiated_cipher(tls)
    verified = :fast_tls.get_verify_result(tls)
    :ok = :fast_tls.close(tls)
    {back, :crypto.hash(:sha256, certificate), cipher, verified}
  end

  defp received(_tls, size, held) when byte_size(held) >= size, do: held

  defp received(tls, size, held) do
    case :fast_tls.recv(tls, 0, 20_000) do
      {:ok, more} -> received(tls, size, held <> more)
      {:error, why} -> {:error, why, byte_size(held)}
    end
  end

  defp closed?(socket) do
    case :gen_tcp.recv(socket, 0, 20_000) do
      {:error, :closed} -> true
      {:error, _} -> false
      # An alert comes first, or not.
      {:ok, _} -> closed?(socket)
    end
  end

  # ---- bitcask: keys that are written again, deleted, merged -------------------------------------------

  @doc "So many keys in many files: written, three quarters of them again, each seventh deleted; merged, and opened anew in between."
  def bitcask(folder, keys) do
    folder = String.to_charlist(folder)
    options = [:read_write, max_file_size: 200_000]
    store = :bitcask.open(folder, options)
    for n <- 1..keys, do: :ok = :bitcask.put(store, key(n), value(n, 1))
    for n <- 1..keys, rem(n, 4) != 0, do: :ok = :bitcask.put(store, key(n), value(n, 2))
    for n <- 1..keys//7, do: :ok = :bitcask.delete(store, key(n))
    first = contents(store)
    :ok = :bitcask.close(store)

    # What is merged is what nobody writes to any more.
    reader = :bitcask.open(folder)
    reopened = contents(reader)
    {needs?, _} = :bitcask.needs_merge(reader)
    :ok = :bitcask.merge(folder)
    merged = contents(reader)
    :ok = :bitcask.close(reader)

    store = :bitcask.open(folder, options)
    again = contents(store)
    :ok = :bitcask.put(store, "after", "merge")
    one = {:bitcask.get(store, "after"), :bitcask.get(store, key(1)), :bitcask.get(store, key(3))}
    {counted, _} = :bitcask.status(store)
    :ok = :bitcask.close(store)

    %{
      first: first,
      reopened: reopened,
      needs_merge: needs?,
      merged: merged,
      again: again,
      one: one,
      keys: counted
    }
  end

  defp key(n), do: "key #{n}"
  defp value(n, turn), do: :binary.copy(<<n::32, turn>>, 20)

  # How many, and which.
  defp contents(store) do
    all = :bitcask.fold(store, fn key, value, all -> [{key, value} | all] end, [])
    {length(all), :crypto.hash(:sha256, :erlang.term_to_binary(Enum.sort(all)))}
  end

  # ---- ets_cache: tables ---------------------------------------------------------------------------------

  @doc "Tables of a bounded size that callers ask beside each other, and what their counters say."
  def caches(tables, callers, lookups) do
    names = for n <- 1..tables, do: :"cache_#{n}"
    for name <- names, do: :ok = :ets_cache.new(name, max_size: 100_000, cache_missed: true)

    told =
      1..callers
      |> Enum.map(fn caller -> Task.async(fn -> lookups(names, caller, lookups) end) end)
      |> Task.await_many(600_000)

    sizes = for name <- names, do: :ets_cache.info(name, :size)
    for name <- names, do: :ets_cache.delete(name, {:key, 1})
    gone = for name <- names, do: :ets_cache.lookup(name, {:key, 1})
    # What a reader makes while another one deletes is not kept: the library's counters see to that.
    counters = for name <- names, do: :ets_cache.incr(name, {:count, 1}, 5)
    for name <- names, do: :ok = :ets_cache.clear(name)
    cleared = for name <- names, do: :ets_cache.lookup(name, {:key, 2})
    for name <- names, do: :ets_cache.delete(name)
    {Enum.uniq(told), sizes, gone, counters, cleared}
  end

  defp lookups(names, _caller, count) do
    for n <- 1..count, name <- names do
      {:ok, value} =
        :ets_cache.lookup(name, {:key, rem(n, 50)}, fn -> {:ok, {name, rem(n, 50)}} end)

      value
    end
    |> :erlang.phash2()
  end

  # ---- cl: OpenCL on pocl ---------------------------------------------------------------------------------

  @doc "Adds two vectors of that number of floats on the first device."
  def opencl(count) do
    # pocl waits for the linker that it starts. The VM ignores this signal, so nobody can wait for a process there, and
    # pocl ends the VM; a host has the signal as every program has it, and needs no such line.
    if :cl.module_info(:nifs) != [], do: :ok = :os.set_signal(:sigchld, :default)
    {:ok, [platform | _]} = :cl.get_platform_ids()
    {:ok, [device | _]} = :cl.get_device_ids(platform, :all)
    {:ok, context} = :cl.create_context([device])
    {:ok, queue} = :cl.create_queue(context, device, [])
    bytes = 4 * count
    a = for n <- 1..count, into: "", do: <<n * 1.0::float-32-native>>
    b = for n <- 1..count, into: "", do: <<n * 0.5::float-32-native>>
    {:ok, in_a} = :cl.create_buffer(context, [:read_only], bytes)
    {:ok, in_b} = :cl.create_buffer(context, [:read_only], bytes, b)
    {:ok, out} = :cl.create_buffer(context, [:write_only], bytes)

    {:ok, program} =
      :cl.create_program_with_source(context, """
      __kernel void add(__global const float *a, __global const float *b, __global float *c) {
          const size_t i = get_global_id(0);
          c[i] = a[i] + b[i];
      }
      """)

    :ok = :cl.build_program(program, [device], ~c"")
    {:ok, kernel} = :cl.create_kernel(program, ~c"add")

    for {buffer, n} <- Enum.with_index([in_a, in_b, out]),
        do: :ok = :cl.set_kernel_arg(kernel, n, buffer)

    {:ok, written} = :cl.enqueue_write_buffer(queue, in_a, 0, bytes, a, [])
    {:ok, added} = :cl.enqueue_nd_range_kernel(queue, kernel, [count], [1], [written])
    {:ok, read} = :cl.enqueue_read_buffer(queue, out, 0, bytes, [added])
    :ok = :cl.flush(queue)
    {:ok, sums} = :cl.wait(read, 60_000)

    # cl frees the bytes that OpenCL still copies, when their event is collected before its end: in the VM as well.
    {:ok, :completed} = :cl.wait(written, 60_000)

    {for(<<sum::float-32-native <- sums>>, do: sum), :cl.create_kernel(program, ~c"no_such")}
  end
end
