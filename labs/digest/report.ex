defmodule Tame.Digest.Report do
  @moduledoc "The digest lab's part in `mix tame.report`, where `tame_sha3` is there."

  @behaviour Tame.Report.Lab

  alias Tame.Digest
  alias Tame.Digest.{Format, Section}

  @impl true
  def name, do: "digest"

  @impl true
  defdelegate here?, to: Digest

  @impl true
  def prepare(options) do
    if here?(),
      do: {:ok, fn -> Digest.measure(options.run) end},
      else:
        {:error,
         "the lab digest: there is no tame_sha3 in this project, expected the package libraries/sha3 among its dependencies"}
  end

  @impl true
  defdelegate text(result), to: Format

  @impl true
  def ok?(_result), do: true

  @impl true
  def to_save(result) do
    Map.take(result, [:implementation, :openssl, :rounds, :seed, :calls, :load])
  end

  @impl true
  def shape do
    %{
      implementation: :text,
      openssl: :text,
      rounds: :count,
      seed: :count,
      calls: [
        %{bytes: :count, way: :text, us: :amount, spread_us: {:maybe, {:row, [:amount, :amount]}}}
      ],
      load: [%{way: :text, mb_per_s: :amount, p50_us: :amount, p99_us: :amount, max_us: :amount}]
    }
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    for(row <- saved.calls, do: {"#{row.way}, #{row.bytes} B", "median", row.us}) ++
      for row <- saved.load, {metric, key} <- [{"p99", :p99_us}, {"longest", :max_us}] do
        {"a neighbour of #{row.way}", metric, row[key]}
      end
  end
end
