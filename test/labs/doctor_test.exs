defmodule Tame.DoctorTest do
  use ExUnit.Case, async: true

  alias Tame.Doctor

  @now ~U[2026-01-02 03:04:05.000Z]

  # A machine on which all is well.
  defp facts(changed) do
    Map.merge(
      %{
        otp: "25",
        erts: "13.1.5",
        native_dir: "/priv/erts-13.1.5",
        natives:
          for(
            name <- ~w(tame_host tame_ring_nif.so tame_permits.so tame_iovec.so),
            do: {name, true}
          ),
        other_erts: [],
        labs_dir: "/labs/priv/erts-13.1.5",
        labs?: true,
        header: "/otp/include/erl_nif.h",
        header?: true,
        tools: [{"cc", true}, {"make", true}],
        assets: {:ok, %{}},
        start: :ok,
        configured: [:jiffy, {:fast_yaml, hosts: 2}],
        info: %{
          jiffy: %{state: :serving, restarts: 3, hosts: [%{state: :up, os_pid: 7, up_ms: 65_000}]},
          fast_yaml: %{state: :empty, restarts: 0, hosts: [%{state: :crashed, os_pid: 0, up_ms: 0}]}
        },
        now: @now,
        system: [
          flavor: "jit",
          build_type: "opt",
          schedulers: 2,
          dirty_cpu_schedulers: 2,
          dirty_io_schedulers: 10,
          busy_wait: "sbwt none",
          busy_percent: 90,
          cpu_quota: :none,
          clock_step_ns: 1
        ]
      },
      Map.new(changed)
    )
  end

  defp finding(changed, id) do
    result = changed |> facts() |> Doctor.examine()
    assert [finding] = for(finding <- result.findings, finding.id == id, do: finding)
    {finding, Doctor.ok?(result)}
  end

  test "where all is well, each finding is ok and has nothing to mend" do
    result = Doctor.examine(facts([]))
    assert Doctor.ok?(result)
    for finding <- result.findings, do: assert({finding.state, finding.mend} == {:ok, nil})

    assert Enum.map(result.findings, & &1.id) ==
             ~w(natives headers compiler labs report application isolation flags)a
  end

  test "since when a module is isolated" do
    assert [
             %{module: :fast_yaml, hosts: [%{state: :crashed, since: nil}]},
             %{module: :jiffy, restarts: 3, hosts: [%{os_pid: 7, since: ~U[2026-01-02 03:03:00Z]}]}
           ] = Doctor.examine(facts([])).isolated

    text = facts([]) |> Doctor.examine() |> Doctor.Format.text() |> IO.iodata_to_binary()

    assert text =~
             ":jiffy  serving, restarts of hosts: 3\n  OS process 7: up since 2026-01-02 03:03:00Z\n"
  end

  # What is there, the id, whether tame works without it, what the line and its remedy say.
  for {changed, id, ok?, text, mend} <- [
        {[natives: [{"tame_host", false}], other_erts: ["15.2"]], :natives, false,
         "tame_host not built for Erlang/OTP 25 (ERTS 13.1.5); built for ERTS 15.2 only",
         "mix deps.compile tame"},
        {[header?: false], :headers, true, "there is no /otp/include/erl_nif.h",
         "apt-get install erlang-dev"},
        {[tools: [{"cc", false}, {"make", true}]], :compiler, true, "no cc on PATH",
         "apt-get install gcc"},
        {[labs?: false], :labs, false, "not built for ERTS 13.1.5",
         "mix deps.compile tame_labs --force"},
        {[assets: {:error, "no page.js; run: make -C /tree assets"}], :report, true, "no page.js",
         "make -C /tree assets"},
        {[start: {:error, {{:not_isolated, ~c"jiffy is not isolated: why"}, :start}}, info: %{}],
         :application, false, "tame does not start: jiffy is not isolated: why", "config :tame"},
        {[start: {:error, :else}], :application, false, "tame does not start: :else", "the log"},
        {[configured: [], info: %{}], :isolation, true, "no module is isolated",
         "config :tame, isolate:"},
        {[configured: [:jiffy, :other]], :isolation, false, "configured and not isolated: :other",
         ":tame.isolate(:other) says why"},
        {[configured: [], info: %{jiffy: %{state: :failed, restarts: 11, hosts: []}}], :isolation,
         false, "the hosts do not answer calls: :jiffy", ":tame.restart(:jiffy)"}
      ] do
    test "#{id}: #{text}" do
      {finding, ok?} = finding(unquote(Macro.escape(changed)), unquote(id))
      assert ok? == unquote(ok?)
      assert finding.state == if(ok?, do: :note, else: :missing)
      assert finding.text =~ unquote(text)
      assert finding.mend =~ unquote(mend)
    end
  end

  test "a container with less CPU than schedulers is told by what mends it" do
    system = Keyword.merge(facts([]).system, cpu_quota: 1.0)
    {finding, true} = finding([system: system], :cpu_quota)
    assert finding.text =~ "+S 1 or +sbwt none"
  end
end
