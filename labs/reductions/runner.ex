defmodule Tame.Reductions.Runner do
  @moduledoc """
  Runs variants in turns and collects what was seen of them from outside.

  A turn is a VM of its own (`Tame.Reductions.Turn`), with the emulator flags of this one. Each round has an order of its
  own, drawn from a seed, and never do two variants run at once. A variant that fails is out; the others go on.
  """

  alias Tame.{Peer, Turns}
  alias Tame.Reductions.{Runner, Turn, Variants}

  defstruct [:variant, :status, :reason, turns: []]

  @typedoc "What became of one variant; its turns in order."
  @type outcome :: %Runner{
          variant: Variants.variant(),
          status: :ok | :skipped | :failed,
          reason: nil | String.t(),
          turns: [Turn.turn()]
        }

  @typedoc "Told before each turn; for progress shown to people."
  @type progress :: (%{what: String.t(), done: non_neg_integer(), total: pos_integer()} -> any())

  # 2 GB of memory that the machine has to find first take 10 s; this is far beyond.
  @stall_ms 300_000

  @doc "Gives each variant one turn in each round. Blocks until all are done."
  @spec run([Variants.variant()], pos_integer(), pos_integer(), Turns.seed(), progress()) ::
          [outcome()]
  def run(variants, bytes, rounds, seed, progress \\ fn _ -> :ok end) do
    outcomes =
      variants |> Enum.map(&open/1) |> Enum.with_index() |> Map.new(fn {o, i} -> {i, o} end)

    present = for {index, %{status: :ok}} <- Enum.sort(outcomes), do: index

    turns =
      for {order, round} <- present |> Turns.rounds(rounds, seed) |> Enum.with_index(1),
          index <- order,
          do: {index, round}

    outcomes =
      turns
      |> Enum.with_index()
      |> Enum.reduce(outcomes, fn {{index, round}, done}, outcomes ->
        Map.update!(outcomes, index, fn
          %Runner{status: :ok, variant: %{id: id}} = outcome ->
            progress.(%{what: "#{id}, round #{round}", done: done, total: length(turns)})
            turn(outcome, bytes)

          failed ->
            failed
        end)
      end)

    for {_, outcome} <- Enum.sort(outcomes), do: %{outcome | turns: Enum.reverse(outcome.turns)}
  end

  @doc "What the instruments do by themselves, in a VM of its own."
  @spec floor() :: {:ok, Turn.floor()} | {:error, String.t()}
  def floor, do: in_vm(:floor, [])

  defp open(variant) do
    case Variants.present(variant) do
      :ok -> %Runner{variant: variant, status: :ok}
      {:error, why} -> %Runner{variant: variant, status: :skipped, reason: why}
    end
  end

  defp turn(%Runner{variant: %{mfa: function}} = outcome, bytes) do
    case in_vm(:run, [function, bytes]) do
      {:ok, turn} -> %{outcome | turns: [turn | outcome.turns]}
      {:error, why} -> %{outcome | status: :failed, reason: why}
    end
  end

  defp in_vm(function, args) do
    with {:ok, peer} <- Peer.start(Peer.own_flags() ++ Peer.code_path()) do
      try do
        Peer.call(peer, Turn, function, args, @stall_ms)
      catch
        :exit, {:timeout, _} -> {:error, "did not end within #{div(@stall_ms, 1000)} s"}
        :exit, _ -> {:error, "ended its VM"}
      after
        Peer.stop(peer)
      end
    end
  end
end
