defmodule Tame do
  @moduledoc """
  What `:tame` does, for Elixir: the same words, with keyword lists for options.

      Tame.isolate(:jiffy, hosts: 2)

  In the configuration, applied before the module is first used:

      config :tame, isolate: [jiffy: [hosts: 2, deadline_ms: 5000]]
  """

  @typedoc "A reason, and a sentence that says what to do."
  @type refusal :: {:error, {atom(), charlist()}}

  @doc """
  From now on the NIFs of `module` run in OS processes of their own, behind the same module.

  Options are those of `t::tame_isolate_options.options/0`: `hosts`, `workers`, `deadline_ms` and more.
  """
  @spec isolate(module(), keyword() | map()) :: :ok | refusal()
  def isolate(module, options \\ []), do: :tame.isolate(module, options)

  @doc "In place of `:code.load_binary/3` for an isolated module: the new code asks hosts as well."
  @spec load_binary(module(), charlist(), binary()) :: {:module, module()} | refusal()
  def load_binary(module, file, beam), do: :tame.load_binary(module, file, beam)

  @doc "Undoes `isolate/2`: the module binds its library in this VM again."
  @spec restore(module()) :: :ok | refusal()
  def restore(module), do: :tame.restore(module)

  @doc "Replaces all hosts of a module. Also restarts hosts that Tame gave up on because they crashed too often."
  @spec restart(module()) :: :ok | refusal()
  def restart(module), do: :tame.restart(module)

  @doc "What is isolated, and the state of it."
  @spec info() :: %{module() => map()}
  def info, do: :tame.info()

  @doc """
  The value of `fun`; jobs that this process calls in it raise `{:tame, :deadline}` after `deadline_ms`.

      Tame.deadline(10, fn -> MyLibrary.compress(data) end)
  """
  @spec deadline(non_neg_integer() | :infinity, (() -> value)) :: value when value: term()
  def deadline(deadline_ms, fun), do: :tame.with(%{deadline_ms: deadline_ms}, fun)

  @doc """
  What `:tame.stream/2` gives, as a stream: what the job emits, one part at a time. The job goes on when the next
  part is wanted, and ends when nobody wants one any more.
  """
  @spec stream(:tame_job_call.state()) :: Enumerable.t()
  def stream(state) do
    Stream.resource(fn -> state end, &next/1, &:tame_job_call.halt/1)
  end

  defp next(state) do
    case :tame.next(state) do
      {part, next} -> {[part], next}
      :done -> {:halt, :done}
    end
  end
end
