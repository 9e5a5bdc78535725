defmodule Tame.Test.NifSuite do
  @moduledoc false
  # OTP's own nif_SUITE, unmodified, a case at a time: each in a VM of its own, where the suite's library is the VM's, or
  # a host's. `run/3` is for that VM.

  # tools/nif-suite makes it.
  @compile {:no_warn_undefined, :nif_SUITE}

  @page "docs/reference/nif_suite.md"
  @case_ms 900_000

  # Code that is loaded while a case holds the permission to change code would wait for that case.
  @loaded_first [:timer, :lists, :io, :io_lib, :proplists, :filename, :compile, :file]

  @doc "{Group, case}, of groups that are named once: `:none` is none."
  def cases do
    groups = :nif_SUITE.groups()

    Enum.flat_map(:nif_SUITE.all(), fn
      {:group, group} ->
        {_, _, cases} = List.keyfind(groups, group, 0)
        for name <- cases, do: {group, name}

      name ->
        [{:none, name}]
    end)
  end

  @doc "What the page says cannot pass in a host: the cases of each row."
  def excepted do
    page = File.read!(Path.join(:tame.source_dir(), @page))

    for [_, names] <- Regex.scan(~r/^\| (`.*?) \|/m, page),
        [_, name] <- Regex.scan(~r/`(\w+)`/, names),
        do: String.to_atom(name)
  end

  @doc "Runs a case: `:ok`, `{:skip, why}`, or how it failed."
  def run(folder, where, {group, name}) do
    Enum.each([:ct | @loaded_first], &:code.ensure_loaded/1)
    data = to_charlist(Path.join(folder, "data/"))
    true = :code.add_patha(to_charlist(folder))
    true = :code.add_patha(data)
    config = [data_dir: data, priv_dir: to_charlist(System.tmp_dir!())]

    if where == :host do
      {:ok, _} = Application.ensure_all_started(:tame)
      library = Path.join(folder, "data/nif_SUITE.1.so")
      :ok = :tame.isolate(:nif_SUITE, %{library: library})
    end

    config = :nif_SUITE.init_per_suite(config)
    # Each case but the first relies on one before it to load the library.
    if name != :basic, do: :nif_SUITE.get_string(config)
    config = if group == :none, do: config, else: :nif_SUITE.init_per_group(group, config)
    {pid, monitor} = spawn_monitor(fn -> exit({:came, outcome(name, config)}) end)

    receive do
      {:DOWN, ^monitor, _, _, {:came, came}} -> came
      {:DOWN, ^monitor, _, _, reason} -> {:died, reason}
    after
      @case_ms -> {:stuck, Process.info(pid, :current_stacktrace)}
    end
  end

  defp outcome(name, config) do
    config = :nif_SUITE.init_per_testcase(name, config)

    try do
      apply(:nif_SUITE, name, [config])
    catch
      kind, reason -> {kind, reason, __STACKTRACE__}
    else
      {:skip, why} -> {:skip, why}
      _ -> :ok
    after
      try do
        :nif_SUITE.end_per_testcase(name, config)
      catch
        _, _ -> :ok
      end
    end
  end
end
