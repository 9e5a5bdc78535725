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

  @doc "What the page says cannot pass in a host of this OTP: the cases of each row."
  def excepted do
    page = File.read!(Path.join(:tame.source_dir(), @page))

    for [_, names, versions] <- Regex.scan(~r/^\| (`.*?) \| ([0-9, ]+) \|/m, page),
        System.otp_release() in String.split(versions, ", "),
        [_, name] <- Regex.scan(~r/`(\w+)`/, names),
        do: String.to_atom(name)
  end

  @doc "What starts nodes with names, which a VM that is not distributed does not; nor could a host pass it."
  def distributed, do: [:select_scheduler]

  @doc "Runs a case: `:ok`, `{:skip, why}`, or how it failed."
  def run(folder, where, {group, name}) do
    Enum.each([:ct | @loaded_first], &:code.ensure_loaded/1)
    data = to_charlist(Path.join(folder, "data/"))
    true = :code.add_patha(to_charlist(folder))
    true = :code.add_patha(data)
    config = [data_dir: data, priv_dir: to_charlist(System.tmp_dir!())]

    if where == :host, do: isolate(folder, group, name)

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

  # What the VM's own loader says of libraries that it cannot load: nif_mod stays in the VM.
  defp isolate(folder, _group, :neg) do
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(:nif_SUITE, %{library: Path.join(folder, "data/nif_SUITE.1.so")})
  end

  # Both modules into one group; nif_mod is as if it had never been loaded then.
  defp isolate(folder, group, _name) do
    {:ok, _} = Application.ensure_all_started(:tame)
    # nif_mod is compiled by the cases. With this it is bound as most modules are.
    true = :os.putenv(~c"ERL_COMPILER_OPTIONS", ~c"debug_info")
    changed = folder |> changed() |> to_charlist()
    true = :code.add_patha(changed)
    nif_mod = Path.join(folder, "data/nif_mod")
    {:ok, :nif_mod} = :compile.file(to_charlist(nif_mod), outdir: changed)
    api = %{api_2_4: ".2_4", api_2_0: ".2_0"}[group]

    for {module, library} <- [nif_SUITE: "nif_SUITE.1.so", nif_mod: "nif_mod.1#{api}.so"] do
      options = %{share: :nif_suite, library: Path.join([folder, "data", library])}
      :ok = :tame.isolate(module, options)
    end

    File.rm_rf!(changed)
    true = :code.delete(:nif_mod)
    false = :code.purge(:nif_mod)
  end

  # The suite, with calls of this module where it loads and purges code: what is loaded into the VM asks no host, and
  # a host unloads a library soon after its code was purged, but not at once.
  defp changed(folder) do
    beam = File.read!(Path.join(folder, "nif_SUITE.beam"))
    {:ok, {:nif_SUITE, [abstract_code: {_, forms}]}} = :beam_lib.chunks(beam, [:abstract_code])
    {:ok, :nif_SUITE, changed} = :compile.forms(with_ours(forms), [:debug_info, :nowarn])
    to = Path.join(System.tmp_dir!(), "tame_nif_suite_#{System.pid()}")
    File.mkdir_p!(to)
    File.write!(Path.join(to, "nif_SUITE.beam"), changed)
    to
  end

  @ours [
    erlang: :load_module,
    code: :load_binary,
    erlang: :purge_module,
    code: :purge,
    code: :soft_purge
  ]

  defp with_ours({:call, anno, {:remote, at, {:atom, _, module}, {:atom, _, name}}, args})
       when {module, name} in @ours do
    {:call, anno, {:remote, at, {:atom, at, __MODULE__}, {:atom, at, name}}, with_ours(args)}
  end

  defp with_ours(tree) when is_tuple(tree),
    do: tree |> Tuple.to_list() |> with_ours() |> List.to_tuple()

  defp with_ours([head | tail]), do: [with_ours(head) | with_ours(tail)]
  defp with_ours(leaf), do: leaf

  @doc false
  def load_module(:nif_mod, beam), do: :tame.load_binary(:nif_mod, ~c"nif_mod", beam)
  def load_module(module, beam), do: :erlang.load_module(module, beam)

  @doc false
  def load_binary(:nif_mod, file, beam), do: :tame.load_binary(:nif_mod, file, beam)
  def load_binary(module, file, beam), do: :code.load_binary(module, file, beam)

  @doc false
  def purge_module(module), do: unloaded(:erlang.purge_module(module))
  @doc false
  def purge(module), do: unloaded(:code.purge(module))
  @doc false
  def soft_purge(module), do: unloaded(:code.soft_purge(module))

  # What a purge came to, when the host has no library more than its group.
  defp unloaded(result) do
    :ok = :tame_hosts.changed(:nif_suite)

    Tame.Await.until(fn ->
      %{libraries: count, hosts: hosts} = :tame.info().nif_mod
      Enum.all?(hosts, &(&1.libraries == count))
    end)

    result
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
