defmodule Tame.CompileTameNifTest do
  # lib/mix/compile_tame_nif.ex: a project's library is built by make, which is told where the headers are.
  # Mix has one current project.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  alias Mix.Tasks.Compile.TameNif

  @moduletag :tmp_dir

  @makefile """
  priv/it.so:
  \tmkdir -p priv
  \ttest -f $(ERL_INCLUDE)/erl_nif.h && test -f $(TAME_INCLUDE)/tame.h
  \techo built > $@
  priv/other.so:
  \ttest -f priv/it.so && echo other > $@
  broken:
  \techo this is wrong >&2; false
  """

  defp compiled(folder, name, target) do
    module = "NifProject#{name}"

    File.write!(Path.join(folder, "mix.exs"), """
    defmodule #{module}.MixProject do
      use Mix.Project
      def project, do: [app: :#{name}, version: "1.0.0", tame_nif: #{inspect(target)}]
    end
    """)

    File.write!(Path.join(folder, "Makefile"), @makefile)
    Mix.Project.in_project(name, folder, fn _ -> TameNif.run([]) end)
  end

  test "make is asked for the target, and gets the folders of the headers", %{tmp_dir: folder} do
    assert capture_io(fn -> assert compiled(folder, :nif_good, "priv/it.so") == :ok end) == ""
    assert File.read!(Path.join(folder, "priv/it.so")) == "built\n"
  end

  test "several targets are made in their order, and cleaned", %{tmp_dir: folder} do
    targets = ["priv/it.so", "priv/other.so"]
    assert capture_io(fn -> assert compiled(folder, :nif_two, targets) == :ok end) == ""
    for target <- targets, do: assert(File.regular?(Path.join(folder, target)))
    Mix.Project.in_project(:nif_two, folder, fn _ -> TameNif.clean() end)
    assert File.ls!(Path.join(folder, "priv")) == []
  end

  test "a make above Mix that runs several jobs at once is not that make's", %{tmp_dir: folder} do
    before = Map.new(~w(MAKEFLAGS MAKELEVEL), &{&1, System.get_env(&1)})

    on_exit(fn ->
      for {name, value} <- before,
          do: if(value, do: System.put_env(name, value), else: System.delete_env(name))
    end)

    System.put_env(%{"MAKEFLAGS" => "-j2 --jobserver-auth=98,99", "MAKELEVEL" => "1"})
    assert capture_io(fn -> assert compiled(folder, :nif_beside, "priv/it.so") == :ok end) == ""
  end

  test "what make says is shown, and the compilation ends", %{tmp_dir: folder} do
    printed = capture_io(fn -> assert compiled(folder, :nif_broken, "broken") == {:error, []} end)

    assert printed =~ "this is wrong"
  end

  test "a target that is missing or no text is named", %{tmp_dir: folder} do
    for {name, target} <- [
          nif_none: nil,
          nif_atom: :priv,
          nif_empty: "",
          nif_list: ["priv/it.so", nil]
        ] do
      assert_raise Mix.Error,
                   ~r/tame_nif in mix.exs is #{Regex.escape(inspect(target))}: expected/,
                   fn ->
                     compiled(folder, name, target)
                   end
    end
  end
end
