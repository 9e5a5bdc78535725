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

# Handlers fail on purpose here.
:logger.set_primary_config(:level, :none)
ExUnit.start(timeout: 900_000, assert_receive_timeout: 5000)
