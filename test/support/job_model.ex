defmodule Tame.JobModel.Everywhere do
  @moduledoc false

  defmacro jobs(jobs) do
    for {job, options} <- jobs, placement <- Tame.JobProbe.placements() do
      call = {:"#{job}_#{placement}", [], Macro.generate_arguments(5, __MODULE__)}
      quote do: defjob(unquote(call), unquote(options))
    end
  end
end

defmodule Tame.JobModel do
  @moduledoc """
  Jobs that show on a board what has become of each call: `gated`, of which two run and three wait in each placement;
  `free`, without a gate; `parts`, a gated stream. Each takes a context or `:none`. `natives/job_model_nif.c` has the C side.
  """

  use Tame.Job

  @on_load :load

  require Tame.JobModel.Everywhere
  Tame.JobModel.Everywhere.jobs(gated: [], free: [], parts: [stream: true])

  @jobs [:gated, :free, :parts]
  @placements Tame.JobProbe.placements()
  @tickets 65_536

  # How many calls of `gated` and of `parts` run at once, and wait.
  def max_running, do: 2
  def max_waiting, do: 3

  @doc "Makes the file of the board."
  def new_board(path), do: File.write!(path, :binary.copy(<<0>>, 48 + 16 * @tickets))

  @doc "A call of a job in a placement: `{ticket, sum of the bytes}`, or a stream."
  def call(job, placement, ticket, thing, work, bytes) do
    gate = 8 * index(@jobs, job) + index(@placements, placement)
    apply(__MODULE__, :"#{job}_#{placement}", [gate, rem(ticket, @tickets), thing, work, bytes])
  end

  defp index(list, element), do: Enum.find_index(list, &(&1 == element))

  @doc """
  A stream of `parts` parts over `size` bytes, which begin in the middle of one: whether it goes on with the caller's
  bytes or with a copy after its first part and after its last, the parts, and the sum of the bytes.
  """
  def unaligned_stream(placement, size, parts) do
    bytes = :crypto.strong_rand_bytes(size)
    <<_::3, unaligned::bitstring>> = <<1::3, bytes::binary>>
    :ok = new_ticket(7)
    # As call/6 makes it, and tame:stream/2 of it.
    args = [16 + index(@placements, placement), 7, :none, parts, unaligned]
    start = {:"$tame", :start, :"parts_#{placement}_nif"}
    state = {start, {__MODULE__, :"parts_#{placement}", args}, args}

    {read, of} =
      Enum.map_reduce(1..parts, state, fn _, state ->
        {:part, part, state} = :tame_job_call.next(state)
        {{part, whose(state, unaligned)}, state}
      end)

    :done = :tame_job_call.next(of)
    {told, seen} = Enum.unzip(read)
    {hd(seen), List.last(seen), told, sum(bytes)}
  end

  defp whose({_, _, args}, unaligned),
    do: if(:erts_debug.same(List.last(args), unaligned), do: :callers, else: :copy)

  @doc "The sum that a call of these bytes comes to."
  def sum(bytes), do: bytes |> :binary.bin_to_list() |> Enum.sum()

  def new_thing, do: :erlang.nif_error(:nif_not_loaded)
  def late_thing(_), do: :erlang.nif_error(:nif_not_loaded)
  def new_ticket(_), do: :erlang.nif_error(:nif_not_loaded)
  def release(_), do: :erlang.nif_error(:nif_not_loaded)
  def seen(_), do: :erlang.nif_error(:nif_not_loaded)
  def totals, do: :erlang.nif_error(:nif_not_loaded)

  @nifs [new_thing: 0, late_thing: 1, new_ticket: 1, release: 1, seen: 1, totals: 0]

  def load do
    case :os.getenv(~c"TAME_MODEL_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end
end
