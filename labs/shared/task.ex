defmodule Tame.Task do
  @moduledoc """
  What all `mix tame.*` tasks have in common; `use Tame.Task` stands in the place of `use Mix.Task`.

    * `--help` and `-h` print what `mix help` prints of the task, `--version` prints that of tame. Nothing runs.
    * SIGTERM ends the task with exit status 143, SIGINT (Ctrl-C) with 130: no file is left half-written, and processes
      that the task started end with it. A second SIGINT ends it even when native code holds all schedulers.
    * Nothing is printed in colours or rewritten where `TERM` is `dumb` or `NO_COLOR` is set.
    * Where an output is `-`, it has standard output to itself (`Tame.Output`).

  What `run/1` returns decides how the task ends: `{:error, line}` prints the line, `:failed` says that what failed is
  printed already, both with exit status 1; anything else is 0.
  """

  alias Tame.Output

  @sigterm_status 143
  @sigint_status 130

  defmacro __using__(_) do
    quote do
      use Mix.Task
      @before_compile Tame.Task
    end
  end

  defmacro __before_compile__(_env) do
    quote do
      defoverridable run: 1

      @impl Mix.Task
      def run(argv), do: Tame.Task.run(__MODULE__, argv, fn argv -> super(argv) end)
    end
  end

  @doc "Runs a task, unless the command line asks for its help or the version."
  @spec run(module(), [String.t()], ([String.t()] -> term())) :: :ok
  def run(task, argv, body) do
    plain()

    case asked(Enum.take_while(argv, &(&1 != "--"))) do
      :help -> Mix.Tasks.Help.run([Mix.Task.task_name(task)])
      :version -> Mix.shell().info("tame #{:tame.version()}")
      nil -> fn -> Output.around(fn -> body.(argv) end) end |> ended_by_signals() |> ended()
    end
  end

  @doc "What a task returns whose result is written: whether all went well that could be tried."
  @spec outcome(boolean()) :: :ok | :failed
  def outcome(true), do: :ok
  def outcome(false), do: :failed

  @doc """
  The same of a task that may be able to try nothing of what it was asked for: that is no success.

      iex> Tame.Task.outcome(true, [%{status: "skipped", tried?: false}], & &1.tried?)
      {:error, "nothing was measured: the output says why"}
  """
  @spec outcome(boolean(), [row], (row -> boolean())) :: :ok | :failed | {:error, String.t()}
        when row: map()
  def outcome(ok?, rows, tried?) do
    if ok? and not Enum.any?(rows, tried?),
      do: {:error, "nothing was measured: the output says why"},
      else: outcome(ok?)
  end

  defp ended({:error, line}), do: Mix.raise(line)
  defp ended(:failed), do: exit({:shutdown, 1})
  defp ended(_), do: :ok

  defp asked(words) do
    cond do
      "--help" in words or "-h" in words -> :help
      "--version" in words -> :version
      true -> nil
    end
  end

  # Elixir looks only whether standard output is a terminal.
  defp plain do
    if System.get_env("TERM") == "dumb" or System.get_env("NO_COLOR", "") != "",
      do: Application.put_env(:elixir, :ansi_enabled, false)
  end

  # ---- signals --------------------------------------------------------------------------------------

  defp ended_by_signals(fun) do
    task = self()
    id = {__MODULE__, make_ref()}

    {:ok, ^id} =
      System.trap_signal(:sigterm, id, fn ->
        Output.abandon(task)
        status = if :tame_sigint.came(), do: @sigint_status, else: @sigterm_status
        # What is not written yet may never be read: nobody has to.
        :erlang.halt(status, flush: false)
      end)

    :ok = :tame_sigint.trap()

    try do
      fun.()
    after
      :ok = :tame_sigint.restore()
      System.untrap_signal(:sigterm, id)
    end
  end
end
