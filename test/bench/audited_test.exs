defmodule Audited.Test do
  # The index of docs/audited.md: which functions, with what, and how it is written. What it downloads is not.
  use ExUnit.Case, async: true

  alias Tame.AuditFixture, as: Fixture

  @bench Path.expand("../../bench/audited", __DIR__)

  setup_all do
    for file <- ~w(candidates index), do: Code.require_file("#{file}.exs", @bench)
    :ok
  end

  # Not aliases: the modules are there once the files are read.
  defp index(function, args), do: apply(Audited.Index, function, args)
  defp candidates(function, args), do: apply(Audited.Candidates, function, args)

  defp rows do
    [whole, cut, bad] = Fixture.result().targets

    [
      index(:row, ["alpha:cut/1", [:normal], "p|q", %{cut | about: "on binary,=[]"}]),
      index(:row, ["alpha:whole/1", [:normal, :dirty_cpu], "p", whole]),
      index(:row, ["beta:bad/1", [:unknown], "p", %{bad | crosses_budget_at_bytes: nil}]),
      index(:not_called, ["beta:far/4", [:dirty_io], "p", "has 4 arguments"])
    ]
  end

  test "what blocks from the smallest size on stands first, then those that do not, then those not called" do
    {called, [other]} = index(:sort, [rows()])
    assert Enum.map(called, & &1.function) == ["alpha:whole/1", "alpha:cut/1", "beta:bad/1"]
    assert other.function == "beta:far/4"
  end

  test "Markdown has a line for each, and no text ends a cell" do
    libraries = [{Fixture.library("alpha", "/lib/alpha.so"), "p"}]
    args = [rows(), libraries, [{"q", "undefined symbol"}], "A machine."]
    text = :markdown |> index(args) |> IO.iodata_to_binary()
    assert text =~ ~r/^\| `alpha:whole\/1` \| normal, dirty CPU \| `binary` \| \d+ \|/m
    assert text =~ "| p\\|q |"
    assert text =~ "| `beta:far/4` | dirty I/O | has 4 arguments | p |"
    assert text =~ "| `alpha` | p | 1 normal, 1 dirty CPU | yields, "
    assert text =~ "- q: undefined symbol\n"
  end

  test "the page has the same tables" do
    section = index(:section, [rows(), [], [{"q", "why"}], "A machine."])
    assert {"leak", "0"} in section.facts
    [called | _] = section.tables
    for table <- section.tables, row <- table.rows, do: assert(length(row) == length(table.columns))
    html = called |> Tame.Report.TableView.render() |> IO.iodata_to_binary()
    assert html =~ "data-filter" and html =~ "alpha:whole/1"
  end

  test "candidates are exported functions that are NIFs or call one, and an input is found by trying" do
    beam = to_string(:code.which(:tame_echo_nif))
    {:ok, %{libraries: [library]}} = Tame.Audit.run([%{target: {:module, :tame_echo_nif}}], [])
    functions = candidates(:functions, [library, beam])
    assert {{:tame_echo_nif, :echo_dirty_cpu, 1}, [:dirty_cpu]} in functions
    refute Enum.any?(functions, &match?({{_, :module_info, _}, _}, &1))

    # It takes two binaries of one length, or a binary and a byte.
    assert {:ok, {about, [_, _]}} = candidates(:input, [{:tame_exor, :exor_dirty, 2}])
    assert about =~ "binary"
    assert {:error, "has 5 arguments" <> _} = candidates(:input, [{:m, :f, 5}])
  end
end
