defmodule Tame.Audit.Conform.Sides do
  @moduledoc false
  # The three VMs in which a library is called: it is in two of them, so that what differs by chance is known, and isolated
  # in the third. Each has a folder of its own, in which what the library writes is thrown away.

  alias Tame.Audit.Peer

  @enforce_keys [:function, :folder]
  defstruct [:function, :folder, pids: []]

  @type t :: %__MODULE__{function: mfa(), folder: Path.t(), pids: [pid()]}

  @names [:vm, :vm_again, :isolated]
  @open_ms 60_000

  @doc "The VMs for a module, of which this is a function. `stop/1` is always called."
  @spec new(mfa()) :: t()
  def new(function) do
    number = System.unique_integer([:positive])
    folder = Path.join(System.tmp_dir!(), "tame_conform_#{System.pid()}_#{number}")
    %__MODULE__{function: function, folder: folder}
  end

  @doc "Starts them anew. The error is one line."
  @spec start(t()) :: {:ok, t()} | {:error, String.t()}
  def start(sides) do
    stop(sides)
    pids = Enum.map(@names, &start_one/1)
    sides = %{sides | pids: pids}

    [@names, pids]
    |> Enum.zip()
    |> all(fn {name, pid} -> open(name, pid, sides) end)
    |> Enum.zip(@names)
    |> Enum.find_value({:ok, sides}, fn
      {:ok, _} -> nil
      {{:error, why}, name} -> {:error, "#{words(name)}: #{why}"}
    end)
  end

  # A process of its own owns the VM, so that three of them can be called at once.
  defp start_one(name) do
    {flags, env} = unlike(name)
    {:ok, pid} = Agent.start_link(fn -> Peer.start([], flags, env) end, timeout: @open_ms)
    pid
  end

  # The second VM takes its memory from malloc, as a host does, which fills it: what a library reads and has not written
  # is other bytes there, and varies. By mallopt(3) new memory is the complement, here 0x5A, and freed memory 0xA5.
  defp unlike(:vm_again), do: {["+Mea", "min"], [{~c"MALLOC_PERTURB_", ~c"165"}]}
  defp unlike(_name), do: {[], []}

  defp open(name, pid, sides) do
    folder = Path.join(sides.folder, "#{name}")
    File.mkdir_p!(folder)
    opens = if name == :isolated, do: :isolate, else: :open

    case call(pid, opens, [sides.function, String.to_charlist(folder)], @open_ms) do
      {:ok, {:ok, _}} ->
        :ok

      {:ok, {:error, {:refused, sentence}}} ->
        {:error, sentence}

      {:ok, {:error, :no_nifs}} ->
        {:error,
         "the module has no NIFs once it and its application are loaded: it does not use this library"}

      {:ok, {:error, {:not_started, application, why}}} ->
        {:error,
         "the application #{application}, which may load the library, does not start: #{one_line(why)}"}

      {:ok, {:error, {:load, why}}} ->
        {:error, "the module does not load: #{why}"}

      {:ok, {:error, why}} ->
        {:error, "the module does not load: #{inspect(why, limit: 10)}"}

      {:error, why} ->
        {:error, "loading the module #{why}"}
    end
  end

  defp one_line(text), do: text |> String.split() |> Enum.join(" ") |> String.slice(0, 300)

  @doc "What a function of tame_conform answers in each VM: `[vm, vm_again, isolated]`."
  @spec run(t(), atom(), [term()], pos_integer()) :: [{:ok, term()} | {:error, String.t()}]
  def run(sides, function, args, limit_ms) do
    all(sides.pids, &call(&1, function, args, limit_ms))
  end

  @doc "The same in the isolated one alone."
  @spec isolated(t(), atom(), [term()], pos_integer()) :: {:ok, term()} | {:error, String.t()}
  def isolated(sides, function, args, limit_ms) do
    sides.pids |> List.last() |> call(function, args, limit_ms)
  end

  defp call(pid, function, args, limit_ms) do
    Agent.get(
      pid,
      fn
        {:ok, peer} -> Peer.call(peer, :tame_conform, function, args, limit_ms)
        {:error, _} = error -> error
      end,
      :infinity
    )
  catch
    # They were not to be started again.
    :exit, {:noproc, _} -> {:error, "does not run"}
  end

  defp all(list, fun) do
    list |> Enum.map(&Task.async(fn -> fun.(&1) end)) |> Task.await_many(:infinity)
  end

  @doc "Ends them, whatever they do, with what they have written."
  @spec stop(t()) :: :ok
  def stop(sides) do
    for pid <- sides.pids, Process.alive?(pid) do
      Agent.update(pid, fn state -> with({:ok, peer} <- state, do: Peer.stop(peer)) end, :infinity)
      Agent.stop(pid)
    end

    _ = File.rm_rf(sides.folder)
    :ok
  end

  defp words(:isolated), do: "isolated"
  defp words(_vm), do: "in the VM"
end
