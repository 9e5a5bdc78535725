defmodule Tame.JobOutputs do
  @moduledoc """
  Jobs whose outputs grow, in every placement: `grow(bytes, made, us)` is an output that was made with room for `made`
  bytes, or 0. `natives/job_outputs_nif.c` has the C side.
  """

  use Tame.Job

  @on_load :load
  @nifs [counts: 0]

  defjob(auto(bytes, made, us))
  defjob(inline(bytes, made, us))
  defjob(yielding(bytes, made, us))
  defjob(dirty_cpu(bytes, made, us))
  defjob(dirty_io(bytes, made, us))
  defjob(yielding_dirty(bytes, made, us))
  defjob(thread(bytes, made, us))
  defjob(pool(bytes, made, us))
  defjob(parts(parts, bytes, cut), stream: true)
  defjob(parts_in_pool(parts, bytes, cut), stream: true)
  defjob(outside())

  @doc "The bytes that a call in this placement grows."
  def grow(placement, bytes, made \\ 0, us \\ 0) do
    {grown, ""} = apply(__MODULE__, placement, [bytes, made, us])
    grown
  end

  @doc "What they have to be."
  def expected(bytes) do
    period = for byte <- 0..250, into: <<>>, do: <<byte>>
    period |> :binary.copy(div(bytes, 251) + 1) |> binary_part(0, bytes)
  end

  @doc "Calls whose steps were done, that had a result, and that were cleaned up."
  def counts, do: :erlang.nif_error(:nif_not_loaded)

  def load do
    case :os.getenv(~c"TAME_OUTPUTS_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end
end
