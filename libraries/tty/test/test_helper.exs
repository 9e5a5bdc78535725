# Compiled to where the VMs of the tests find it by their code path.
folder = Path.join(Mix.Project.build_path(), "test_support")
File.rm_rf!(folder)
File.mkdir_p!(folder)

for file <- Path.wildcard(Path.join(__DIR__, "support/*.erl")) do
  {:ok, _} =
    :compile.file(to_charlist(file), [
      :return_errors,
      :warnings_as_errors,
      outdir: to_charlist(folder)
    ])
end

{:ok, _, _} =
  Kernel.ParallelCompiler.compile_to_path(
    Path.wildcard(Path.join(__DIR__, "support/*.ex")),
    folder
  )

Code.prepend_path(folder)

excluded =
  if Tame.TTY.Test.Pane.tmux?() do
    []
  else
    IO.puts("skipped: all tests in a terminal, because there is no tmux here")
    [:terminal]
  end

ExUnit.start(exclude: excluded)
