# Compiled to where the VMs of the tests find it by their code path.
folder = Path.join(Mix.Project.build_path(), "test_support")
File.rm_rf!(folder)
File.mkdir_p!(folder)

{:ok, _, _} =
  Kernel.ParallelCompiler.compile_to_path(
    Path.wildcard(Path.join(__DIR__, "support/*.ex")),
    folder
  )

Code.prepend_path(folder)

# A test kills a reader, whose supervisor tells.
:logger.set_primary_config(:level, :critical)
{:ok, _} = Application.ensure_all_started(:tame_nng)
ExUnit.start(assert_receive_timeout: 5000)
