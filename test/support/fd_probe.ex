defmodule Tame.FdProbe do
  @moduledoc """
  Descriptors on `tame/fd.h`, in a throw-away emulator. `natives/fd_probe_nif.c` has the C side, and says what
  each function returns. The library is the one that the variable `TAME_FD_LIBRARY` names when the module is loaded.
  """

  @on_load :load

  # Not read back from @nifs, which newer Elixir collects.
  functions =
    [open: 1, read: 2, read_dirty: 2, write: 3, wait: 3, wait_dirty: 3, begin: 2, done: 2] ++
      [cancel: 2, wake: 2, close: 2, close_dirty: 2, give: 2, number: 1, thread: 3, counts: 0] ++
      [guard: 1, unguard: 1, half_close: 1, exhaust: 0, relieve: 0]

  @nifs functions
  # Older Elixir warns of what nobody reads.
  _ = @nifs

  for {name, arity} <- functions do
    def unquote(name)(unquote_splicing(Macro.generate_arguments(arity, __MODULE__))) do
      _ = [unquote_splicing(Macro.generate_arguments(arity, __MODULE__))]
      :erlang.nif_error(:nif_not_loaded)
    end
  end

  def load do
    case :os.getenv(~c"TAME_FD_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end

  @doc "The number of the process's open descriptors."
  def descriptors, do: length(File.ls!("/proc/self/fd"))

  @doc """
  Reads once, waiting when it must: bytes, `:end`, `:closed`, `:cancelled`, or `{:late, what}` when the message was
  under way already. What the process does in the meantime: `:cancel`, and `{from, {:give, fd, to}}`.
  """
  def read_wait(fd, read \\ &read/2) do
    ref = make_ref()

    case read.(fd, ref) do
      :wait -> await(fd, ref, read)
      other -> other
    end
  end

  defp await(fd, ref, read) do
    receive do
      {:tame_fd, ^ref, :ready} ->
        read_wait(fd, read)

      {:tame_fd, ^ref, :closed} ->
        :closed

      :cancel ->
        cancelled(fd, ref)

      {from, {:give, ^fd, to}} ->
        send(from, {self(), give(fd, to)})
        await(fd, ref, read)
    end
  end

  defp cancelled(fd, ref) do
    case cancel(fd, :read) do
      :done -> :cancelled
      :sent -> receive(do: ({:tame_fd, ^ref, what} -> {:late, what}))
    end
  end

  @doc "Closes, and returns when it is closed; `:closed` when somebody else did."
  def close_wait(fd, close \\ &close/2) do
    ref = make_ref()

    case close.(fd, ref) do
      :wait -> receive(do: ({:tame_fd, ^ref, :closed} -> :done))
      other -> other
    end
  end
end
