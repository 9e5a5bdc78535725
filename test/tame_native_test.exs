defmodule TameNativeTest do
  # Where a host runs, by what the VM says of its system; where tame's files are, by what the code knows of itself.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package, only: [run: 3]

  test "isolation is refused by name where a host does not run" do
    assert :tame_native.host_runs_on({:unix, :linux}) == :ok

    for {family, name} <- [unix: :darwin, unix: :freebsd, win32: :nt] do
      assert {:error, {:unsupported_system, sentence}} = :tame_native.host_runs_on({family, name})

      assert sentence == ~c"isolation runs on Linux only, and this is #{name}"
    end
  end

  describe "code that was stripped, as in a release" do
    setup do
      folder = Path.join(tmp_dir!(), "tame")
      File.mkdir_p!(Path.join(folder, "ebin"))

      for module <- [:tame, :tame_native] do
        {:ok, {_, stripped}} = :beam_lib.strip(File.read!(:code.which(module)))
        File.write!(Path.join(folder, "ebin/#{module}.beam"), stripped)
      end

      %{folder: folder}
    end

    # What an expression comes to in a VM that has this code alone.
    defp eval(folder, expression) do
      print = "Says = try #{expression} catch _:Why -> Why end, io:format(\"~0p\", [Says]), halt()."
      {out, 0} = run(folder, "erl", ["-noinput", "-pa", "ebin", "-eval", print])
      out
    end

    test "says how natives are built, and in one sentence that it has no headers", %{
      folder: folder
    } do
      assert eval(folder, "tame_native:how_to_build()") =~ "before the release is made"

      assert eval(folder, "tame:include_dir()") =~
               "{tame,{no_sources,\"the folder of tame's sources is not known here: the code is stripped"
    end

    test "finds the headers where its own folder has them", %{folder: folder} do
      File.mkdir_p!(Path.join(folder, "c_include"))
      File.write!(Path.join(folder, "c_include/tame.h"), "")
      assert eval(folder, "tame:include_dir()") =~ "c_include"
      assert eval(folder, "tame_native:how_to_build()") =~ "c_src/build.sh"
    end

    test "says in an escript that isolation needs files", %{folder: folder} do
      {:ok, {_, zip}} =
        :zip.create(~c"tame.zip", [~c"ebin/tame_native.beam"], [:memory, cwd: to_charlist(folder)])

      archive = Path.join(folder, "tame.ez")
      File.write!(archive, zip)
      # The code path of an escript goes into its archive.
      says = "code:add_patha(\"tame.ez/ebin\"), tame_native:how_to_build()"
      File.rm!(Path.join(folder, "ebin/tame_native.beam"))
      assert eval(folder, "begin #{says} end") =~ "an escript does not have"
    end
  end
end
