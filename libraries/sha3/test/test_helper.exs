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

# Where other work keeps the cores busy, tame warns of steps that took long; schedulers_test measures what they take.
:logger.set_primary_config(:level, :error)
ExUnit.start()
