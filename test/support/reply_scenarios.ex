defmodule Tame.ReplyScenarios do
  @moduledoc """
  Replies that a host has trouble with (`natives/reply_nif.c`), and modules as their authors write and compile them. In a
  VM of its own.
  """

  @compile {:no_warn_undefined, Tame.RepliesInElixir}

  alias Tame.Test.CLibrary

  @source Path.expand("natives/reply_nif.c", __DIR__)
  @functions [repeat: 2, atoms: 2, resources: 1, again: 0, no_term: 0] ++
               [late_ref: 1, send_many: 1, map_of_maps: 1, shared: 2, fleeting: 1, destroyed: 0]

  @doc "A module of this name, in Erlang, whose library has not been loaded in this VM."
  def build(module) do
    exports = Enum.map_join(@functions, ", ", fn {name, arity} -> "#{name}/#{arity}" end)

    bodies =
      for {name, arity} <- @functions,
          do: "#{name}(#{underscores(arity)}) -> erlang:nif_error(not_loaded).\n"

    CLibrary.module!(module, @source, """
    -module(#{module}).
    -export([#{exports}]).
    -on_load(start/0).
    start() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    #{bodies}
    """)
  end

  defp underscores(arity), do: Enum.map_join(1..arity//1, ", ", fn _ -> "_" end)

  @doc "The same, and isolated."
  def isolated(module, options \\ %{}) do
    {:ok, _} = Application.ensure_all_started(:tame)
    _ = build(module)
    :ok = :tame.isolate(module, options)
    module
  end

  @doc "How many elements the replies have, and what came of the others; atoms are repeated, and many."
  def atoms(options, calls) do
    module = isolated(:replies_of_atoms, options)

    for {name, prefix, n} <- calls do
      try do
        length(apply(module, name, [String.to_charlist(prefix), n]))
      catch
        :error, reason -> reason
      end
    end
  end

  @doc "What comes of terms that share parts, each way that one leaves a host, and whether it is the same host then."
  def shared(options, n) do
    module = isolated(:replies_that_share, options)
    hosts = fn -> for host <- :tame.info()[module].hosts, do: host.os_pid end
    before = hosts.()

    outcomes =
      for how <- [:value, :raise, :send, :hash] do
        try do
          module.shared(how, n)
        catch
          :error, reason -> reason
        end
      end

    {outcomes, hosts.() == before}
  end

  @doc "What comes of a list of one binary, so often, before and after a long one has been an argument."
  def repeated(options, bytes, n) do
    module = isolated(:replies_to_repeated, options)
    binary = :binary.copy("a", bytes)

    for args <-
          [List.duplicate(binary, 40), List.duplicate(binary, n), Enum.to_list(1..20_000)] ++
            [List.duplicate(binary, 40), List.duplicate(binary, n)] do
      try do
        module.repeat(args, 0)
      catch
        :error, reason -> reason
      end
    end
  end

  @doc "Resources by the thousand, once more each twice: how many references there are, and how many different ones."
  def resources(n) do
    module = isolated(:replies_of_resources)
    first = module.resources(n)
    again = [module.again(), module.again()]
    same = Enum.all?(again, &(Enum.sort(Enum.uniq(&1)) == Enum.sort(Enum.uniq(first))))
    {Enum.map([first | again], &length/1), length(Enum.uniq(first)), same}
  end

  @doc """
  A resource that the library keeps is taken and let go of by several callers at once, each this often: whether at the
  end the VM has no more leases than at first and those that are lent ahead, and no resource.
  """
  def one_for_all(callers, times) do
    module = isolated(:replies_of_one_resource)
    _ = module.resources(1)

    1..callers
    |> Enum.map(fn _ -> Task.async(fn -> take(module, times) end) end)
    |> Task.await_many(600_000)

    Tame.Await.until(fn ->
      Enum.each(Process.list(), &:erlang.garbage_collect/1)
      %{hosts: [%{ring: ring}]} = :tame.info()[module]
      ring.resources == 0 and ring.leases_unused <= (callers + 1) * 256
    end)
  end

  defp take(_module, 0), do: :ok

  defp take(module, times) do
    _ = for _ <- 1..3, do: module.again()
    :erlang.garbage_collect()
    take(module, times - 1)
  end

  @doc """
  This many resources at a time that neither side keeps, each number in its turn: for which of them the library saw all
  ends within a second, although no process but the caller collected its heap.
  """
  def fleeting(numbers) do
    module = isolated(:replies_of_fleeting_resources)

    Enum.filter(numbers, fn n ->
      before = module.destroyed()
      ^n = length(module.fleeting(n))
      :erlang.garbage_collect()
      Tame.Await.until(fn -> module.destroyed() == before + n end, 1000)
    end)
  end

  @doc "A call that asks the VM while this is done: what came of both."
  def asks_while(how) do
    module = isolated(:replies_in_flight)
    call = Task.async(fn -> raised(fn -> module.late_ref(3000) end) end)
    true = Tame.Await.until(fn -> Tame.ProcessScenarios.in_use(module) == 1 end)

    done =
      case how do
        :restore -> :tame.restore(module)
        :restart -> :tame.restart(module)
        :stop -> Application.stop(:tame)
      end

    {done, is_reference(Task.await(call, 600_000))}
  end

  @doc "Messages that a NIF sends one by one, to its caller: all of them, in their order."
  def messages(n) do
    module = isolated(:replies_of_messages)
    ^n = module.send_many(n)

    Enum.all?(0..(n - 1), fn i ->
      receive(do: (message -> message == i), after: (10_000 -> false))
    end)
  end

  def map_of_maps(n, deadline_ms) do
    module = isolated(:replies_of_maps, %{deadline_ms: deadline_ms})
    module.map_of_maps(n) == Map.new(0..(n - 1), &{%{id: &1}, &1})
  end

  def no_term do
    module = isolated(:replies_of_nothing)
    {raised(fn -> module.no_term() end), length(module.repeat(~c"ok", 3))}
  end

  defp raised(fun) do
    fun.()
  catch
    :error, reason -> reason
  end

  @doc """
  A module that is written in Elixir, as its compiler leaves it: isolated each way, called, and whether it says the same
  source of itself.
  """
  def in_elixir(ways) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = write_in_elixir()
    source = module.module_info(:compile)[:source]
    true = is_list(source)

    for how <- ways,
        do:
          {how, :tame.isolate(module, %{bind: how}), module.repeat(~c"ok", 3),
           module.module_info(:compile)[:source] == source, :tame.restore(module)}
  end

  @doc "Its folder, for a VM that has no Elixir."
  def write_in_elixir do
    {:ok, _} = Application.ensure_all_started(:elixir)
    # When it is compiled its library is not found yet.
    :ok = :logger.set_primary_config(:level, :none)
    module = Tame.RepliesInElixir
    folder = CLibrary.module!(module, @source, "-module('#{module}').")
    File.rm!(Path.join(folder, "#{module}.beam"))

    nifs =
      for {name, arity} <- @functions,
          do: "def #{name}(#{underscores(arity)}), do: :erlang.nif_error(:not_loaded)\n"

    [{^module, beam}] =
      Code.compile_string("""
      defmodule #{inspect(module)} do
        @on_load :start
        def start, do: :erlang.load_nif(:filename.rootname(:code.which(__MODULE__)), 0)
        #{nifs}
      end
      """)

    File.write!(Path.join(folder, "#{module}.beam"), beam)
    File.rm!(Path.join(folder, "#{module}.erl"))
    # Its library goes with it: this one has no upgrade.
    true = :code.delete(module)
    _ = :code.purge(module)
    {:module, ^module} = :code.load_file(module)
    module
  end

  @doc "A library that needs what nobody has."
  def broken do
    {:ok, _} = Application.ensure_all_started(:tame)
    folder = build(:replies_broken)
    :code.purge(:replies_broken)
    options = ["-D_GNU_SOURCE", "-DMODULE=replies_broken", "-DBROKEN"]
    {"", 0} = CLibrary.compile(folder, "replies_broken.c", options)
    :tame.isolate(:replies_broken)
  end
end
