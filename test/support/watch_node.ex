defmodule Tame.WatchNode do
  @moduledoc """
  A node to watch, with our code and without Elixir's, spoken to through its standard input and output; and what it can
  be set to do.
  """

  @cookie "s3cret"

  @doc "Starts it; it ends with `stop/1` or the calling process. Its epmd is that of `Tame.Latency.Distribution`."
  def start(flags \\ []) do
    ebin = fn module -> module |> :code.which() |> Path.dirname() |> String.to_charlist() end

    {:ok, peer, node} =
      :peer.start_link(%{
        connection: :standard_io,
        name: ~c"watched_#{System.pid()}_#{System.unique_integer([:positive])}",
        host: ~c"127.0.0.1",
        longnames: true,
        wait_boot: 30_000,
        args:
          [~c"-start_epmd", ~c"false", ~c"-setcookie", String.to_charlist(@cookie)] ++
            [~c"-kernel", ~c"logger_level", ~c"none"] ++
            Enum.flat_map([:tame, :tame_labs_native, __MODULE__], &[~c"-pa", ebin.(&1)]) ++ flags
      })

    %{peer: peer, node: node}
  end

  def cookie, do: @cookie

  def stop(%{peer: peer}), do: :peer.stop(peer)

  def call(%{peer: peer}, module, function, args),
    do: :peer.call(peer, module, function, args, 600_000)

  @doc "That number of processes there that do `work`, a name of the functions below, on and on."
  def work(watched, work, count) do
    for _ <- 1..count, do: call(watched, :erlang, :spawn, [__MODULE__, work, []])
  end

  @doc "Whether anything of a watch is left there."
  def clean?(watched) do
    Enum.all?(:tame_watch.modules(%{slices: :any}), &gone?(watched, &1)) and
      call(watched, :erlang, :whereis, [:tame_watch]) == :undefined and
      call(watched, :erlang, :system_monitor, []) == :undefined and
      call(watched, :erlang, :statistics, [:scheduler_wall_time]) == :undefined
  end

  defp gone?(watched, module) do
    not call(watched, :erlang, :module_loaded, [module]) and
      not call(watched, :erlang, :check_old_code, [module])
  end

  def dirty do
    :tame_spin.spin_dirty(300_000)
    dirty()
  end

  # One slice of 100 ms in calls of 1 ms that charge nothing, and a rest.
  def cuts do
    :tame_thousand_cuts.cuts(100_000)

    receive do
      :never -> :ok
    after
      20 -> cuts()
    end
  end

  # A slice of 60 ms in a NIF on a normal scheduler, which ends where a dirty one is called.
  def before_dirty do
    :tame_thousand_cuts.cuts(60_000)
    :tame_spin.spin_dirty(60_000)
    before_dirty()
  end

  # A slice of 1.5 s, which is longer than a watch's second, while somebody watches: who is held answers no connection.
  def long_cuts do
    receive do
      :never -> :ok
    after
      500 -> :erlang.whereis(:tame_watch) == :undefined || :tame_thousand_cuts.cuts(1_500_000)
    end

    long_cuts()
  end

  def yielding do
    :tame_spin.spin_yielding(1000)

    receive do
      :never -> :ok
    after
      5 -> yielding()
    end
  end

  def idle do
    receive do
      :never -> :ok
    end
  end

  @doc "A process that has the system monitor, where there is one for the node."
  def monitor do
    :erlang.register(:somebody, self())
    :erlang.system_monitor(self(), [:busy_port])
    idle()
  end
end
