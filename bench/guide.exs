# The figures of docs/guide/well_behaved_nif.md: its files as they stand there, built once for each placement, run one
# after the other on a VM with one scheduler.
#
#   mix run ../bench/guide.exs

defmodule Bench.Guide do
  @guide Path.expand("../docs/guide/well_behaved_nif.md", __DIR__)
  @mib 1024 * 1024

  # The last one moves to the pool.
  @runs [
    {"inline", "TAME_INLINE", 256},
    {"yielding", "TAME_YIELDING", 256},
    {"dirty_cpu", "TAME_DIRTY_CPU", 256},
    {"yielding_dirty", "TAME_YIELDING_DIRTY", 256},
    {"pool", "TAME_POOL", 256},
    {"auto", "TAME_AUTO", 256},
    {"auto", "TAME_AUTO", 2048}
  ]

  def run do
    folder = Path.join(System.tmp_dir!(), "tame_bench_guide_#{System.pid()}")
    File.mkdir_p!(folder)

    for {name, text} <- files(), do: File.write!(Path.join(folder, name), text)
    ok!("erlc", ["-pa", Application.app_dir(:tame, "ebin"), "exor.erl", "measure.erl"], folder)
    job = File.read!(Path.join(folder, "exor.c"))

    for {name, placement, mib} <- @runs do
      File.write!(Path.join(folder, "exor.c"), String.replace(job, "TAME_INLINE", placement))
      build(folder)
      IO.write("#{String.pad_leading(to_string(mib), 4)} MiB  " <> measured(folder, name, mib))
    end

    File.rm_rf!(folder)
  end

  defp files do
    for [_, name, text] <- Regex.scan(~r/^```\w+ file=(\S+)\n(.*?)^```$/ms, File.read!(@guide)),
        name in ~w(exor.c exor.erl measure.erl),
        do: {name, text}
  end

  defp build(folder) do
    erts = Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
    flags = ~w(-std=c11 -O3 -Wall -Wextra -fPIC -shared -I#{erts} -I#{:tame.include_dir()})
    ok!("cc", flags ++ ~w(-o exor.so exor.c), folder)
  end

  defp measured(folder, name, mib) do
    run =
      "A = binary:copy(<<1>>, #{mib * @mib}), " <>
        ~s|measure:run("#{name}", fun() -> exor:exor(A, A) end), halt().|

    ok!("erl", ~w(+S 1 -noinput -pa #{Application.app_dir(:tame, "ebin")} -eval) ++ [run], folder)
  end

  defp ok!(command, args, folder) do
    {output, 0} = System.cmd(command, args, cd: folder, stderr_to_stdout: true)
    output
  end
end

Bench.Guide.run()
