defmodule Tame.Audit.Report do
  @moduledoc "The audit's part in `mix tame.report`: every NIF on the code path, and three of tame's own called."

  @behaviour Tame.Report.Lab

  alias Tame.Audit
  alias Tame.Audit.{Format, Library, Point, Section, Verdict}

  # One that blocks, one that does not, one that is dirty.
  @called ~w(exor_inline exor_yielding exor_dirty)a
  @called_bytes 64 * 1024 * 1024

  @impl true
  def name, do: "audit"

  @impl true
  def prepare(options) do
    checks =
      for name <- @called do
        %{
          target: {:function, {:tame_exor, name, 2}},
          input: {"binary", [:binary]},
          up_to: @called_bytes
        }
      end

    with :ok <- :tame_labs_native.build() do
      {:ok,
       fn ->
         system = Tame.SystemInfo.collect(options.run[:command])
         {:ok, result} = Audit.run([%{target: :all} | checks], system, options.run[:progress])
         result
       end}
    end
  end

  @impl true
  defdelegate text(result), to: Format, as: :called

  # What cannot be called is said in its place and is no failure of the report.
  @impl true
  def ok?(_result), do: true

  @impl true
  def to_save(result) do
    %{
      libraries:
        for library <- result.libraries do
          library
          |> Map.take([:module, :path, :nif_version, :functions])
          |> Map.put(:can, Library.can_texts(library))
        end,
      targets:
        for target <- result.targets do
          target
          |> Map.take([:target, :about, :budget_us, :advice])
          |> Map.put(:verdicts, Enum.map(target.verdicts, &Verdict.text/1))
          |> Map.put(:points, Enum.map(target.points, &Map.from_struct/1))
        end
    }
  end

  @impl true
  def shape do
    %{
      libraries: [
        %{
          module: :text,
          path: :text,
          nif_version: {:maybe, :text},
          can: [:text],
          functions: [%{name: :text, arity: :count, kind: :text}]
        }
      ],
      targets: [
        %{
          target: :text,
          about: :text,
          budget_us: :amount,
          advice: {:maybe, :text},
          verdicts: [:text],
          points: [Point.shape()]
        }
      ]
    }
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    for target <- saved.targets, point = List.last(target.points), point.longest_slice_us > 0 do
      {target.target, "longest slice", point.longest_slice_us}
    end
  end
end
