defmodule Tame.JobLibrary.Placed do
  @moduledoc false
  # A defjob for each placement.

  @everywhere Tame.JobProbe.placements()

  defmacro jobs(where, jobs) do
    placements = if where == :everywhere, do: @everywhere, else: @everywhere -- [:thread, :pool]

    for {job, {arity, options}} <- jobs, placement <- placements do
      call = {:"#{job}_#{placement}", [], Macro.generate_arguments(arity, __MODULE__)}
      quote do: defjob(unquote(call), unquote(options))
    end
  end
end

defmodule Tame.JobLibrary do
  @moduledoc """
  What a real library needs of `tame.h`, each in the smallest job that shows it, by placement: terms in steps (`sum`),
  a result that is built in steps and failures of a step (`count`), units of any cost (`cost`), streams (`parts`), iodata
  and a growing output (`flip`), contexts (`bump`). `natives/job_library_nif.c` has the C side.
  """

  use Tame.Job

  @on_load :load

  @placements Tame.JobProbe.placements()
  @on_schedulers @placements -- [:thread, :pool]

  @doc "The placements of a job whose steps use terms."
  def on_schedulers, do: @on_schedulers

  require Tame.JobLibrary.Placed
  Tame.JobLibrary.Placed.jobs(:on_schedulers, sum: {1, []}, flip: {1, iodata: [1]}, cost: {2, []})

  Tame.JobLibrary.Placed.jobs(:everywhere,
    count: {3, []},
    parts: {2, stream: true},
    late: {1, stream: true},
    bump: {2, []}
  )

  @doc "A call of a job in a placement."
  def call(job, placement, args), do: apply(__MODULE__, :"#{job}_#{placement}", args)

  # Jobs that are no streams, called as one, and the other way.
  defjob(parts_as_value(from, to), nif: :parts_auto_nif)
  defjob(count_as_stream(us, length, what), nif: :count_auto_nif, stream: true)
  defjob(count_terms(us, length, what))
  defjob(count_in_time(us, length, what), nif: :count_pool_nif, deadline_ms: 20)

  def sum_uncut(_), do: :erlang.nif_error(:nif_not_loaded)
  def cleaned, do: :erlang.nif_error(:nif_not_loaded)
  def new_counter, do: :erlang.nif_error(:nif_not_loaded)
  def keep_counter(_), do: :erlang.nif_error(:nif_not_loaded)
  def read_kept(_), do: :erlang.nif_error(:nif_not_loaded)
  def read_counter(_), do: :erlang.nif_error(:nif_not_loaded)
  def state, do: :erlang.nif_error(:nif_not_loaded)

  # What a module has to have.
  def __nifs__, do: __MODULE__.__info__(:attributes) |> Keyword.get_values(:nifs) |> List.flatten()

  @nifs [
    sum_uncut: 1,
    cleaned: 0,
    new_counter: 0,
    keep_counter: 1,
    read_kept: 1,
    read_counter: 1,
    state: 0
  ]

  def load do
    case :os.getenv(~c"TAME_JOB_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 7)
    end
  end
end
