defmodule Mix.Tasks.Tame.ContentionTest do
  # Not async: the real run compares what two floods do to their neighbours.
  use ExUnit.Case
  import ExUnit.CaptureIO
  import Tame.Test.{Refused, Schema}
  import Tame.Test.OsProcess

  alias Mix.Tasks.Tame.Contention
  alias Tame.Contention.{Cell, Figures, Plan}
  alias Tame.Report.Saved
  alias Tame.Test.CLibrary

  setup do
    folder = CLibrary.tmp_dir!()
    %{folder: folder}
  end

  defp json(path) do
    for cell <- assert_schema(path)["cells"], into: %{} do
      figures =
        for key <-
              ~w(neighbour_p99_us neighbour_max_us missed_seconds longest_slice_us charge_ratio),
            do: cell[key]

      {cell["placement"], [cell["status"] | figures] ++ [length(cell["samples"])]}
    end
  end

  test "a run says of each placement how it ended, and what it came to", %{folder: folder} do
    path = Path.join(folder, "out.json")

    text =
      capture_io(fn ->
        ~w(--placements yielding,inline --durations 1ms --multipliers 10)
        |> Enum.concat(["--json", path])
        |> Contention.run()
      end)

    assert %{
             "yielding" => ["ok", p99, max, _, slice, charge, samples],
             "inline" => ["ok", inline_p99, inline_max, _, inline_slice, inline_charge, _]
           } = json(path)

    # The longest of anything may be a turn that the system gave to somebody else; these are never shorter.
    assert max >= p99 and inline_max >= inline_p99 and samples >= 3
    assert slice > 50 and inline_slice > 900

    # Used is time of the clock, in which others may have had the core; one that is not charged has less than a hundredth.
    assert charge > 0.02 and inline_charge > 0.02

    assert text =~ ~r/^jobs of 1 ms +10×$/m
    assert text =~ "On this machine: "
  end

  # A cell off the schedulers is measured once more without busy waiting.
  test "a run makes a report that can be read again" do
    {:ok, plan} = Tame.Contention.prepare(placements: ["pool"], durations: [1000], multipliers: [1])

    result = Tame.Contention.run(plan)
    assert %{cell: %{placement: "pool"}, without_busy_wait: %{status: "ok"}} = result.calm

    labs = [Tame.Contention.Report]
    now = DateTime.utc_now()
    saved = Saved.new([{hd(labs), result}], "mix tame.report", now, now)

    assert {:ok, %{labs: %{"contention" => %{calm: %{}}}}} =
             saved |> Saved.encode() |> IO.iodata_to_binary() |> Saved.decode(labs)
  end

  # A busy machine makes everything later, so only what is late without it is asserted: jobs of 10 ms one after the
  # other on each scheduler. How much later that is than beside yielding, bench/README.md has.
  test "inline and cuts starve neighbours, and only the cuts are not charged for it" do
    charge = fn {module, function} ->
      spec =
        Plan.times(10_000, :quick)
        |> Map.merge(%{job: {module, function, [10_000]}, jobs: 40, duration_us: 10_000})
        |> Map.put(:limit_ms, 60_000)

      assert {:ok, %{outcome: %{status: :ok}} = raw} = Cell.run(spec, ["+S", "2"])
      figures = Figures.figures(raw, spec)
      assert figures.neighbour_max_us > 100_000
      assert figures.longest_slice_us > 9_000
      figures.charge_ratio
    end

    # Charged is time on the core, and a slice may be longer.
    assert charge.({:tame_spin, :spin_inline}) > 4 * charge.({:tame_thousand_cuts, :cuts})
  end

  # How much later the lab itself shows, on a quiet machine.
  test "a driver that computes in control starves neighbours, and not one that does so outside" do
    late_us = fn function ->
      spec =
        Plan.times(10_000, :quick)
        |> Map.merge(%{job: {:tame_spin_driver, function, [10_000]}, jobs: 40})
        |> Map.merge(%{duration_us: 10_000, limit_ms: 60_000})

      assert {:ok, %{outcome: %{status: :ok}} = raw} = Cell.run(spec, ["+S", "2"])
      Figures.figures(raw, spec).neighbour_p99_us
    end

    assert Enum.any?(1..3, fn _ -> late_us.(:spin_inline) > 3 * late_us.(:spin_dirty) end)
  end

  test "a flood that its VM cannot stop is ended by our clock, and what is known of it is there" do
    spec =
      Plan.times(1000, :quick)
      |> Map.merge(%{job: {:tame_spin, :spin_inline, [100_000_000]}, jobs: 50})
      |> Map.merge(%{duration_us: 100_000_000, limit_ms: 500})

    assert {:ok, %{outcome: nil, slices: nil} = raw} = Cell.run(spec, [])
    await_gone(raw.facts.os_pid)
    assert %{neighbour_max_us: max_us, longest_slice_us: nil} = Figures.figures(raw, spec)
    assert max_us > 500_000
  end

  test_refused(Contention, [
    {~w(--placements inline,nope), ~s(unknown placement "nope", expected some of: inline, )},
    {~w(--durations 0ms), "duration 0ms: expected a whole number above 0"},
    {~w(--durations 1ms,10), "duration 10: expected a whole number above 0 with us, ms or s"},
    {~w(--durations 1h), "duration 1h: expected"},
    {~w(--durations 9999s), "duration 9999s: expected"},
    {~w(--durations ,), "--durations ,: expected at least one word"},
    {~w(--multipliers 10x), "multiplier 10x: expected a whole number above 0"},
    {~w(--multipliers 0), "multiplier 0: expected a whole number above 0"},
    {~w(--multipliers 1,10000000), "multiplier 10000000: "},
    {~w(--quick --full), "--quick --full: expected one of the two"},
    {["--erl", "+S x"], ~s(the peer node does not start with "+S x": bad amount of schedulers x)},
    {["--erl", "+Q 7"], ~s(the peer node does not start with "+Q 7": )},
    {["--erl", ~s(+S "2)], ~s(--erl)},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(--placement inline), "unknown switch --placement, expected one of: --quick, "},
    {~w(more), ~s(unexpected word "more")}
  ])

  # Peers that cannot stop by themselves, in a VM that is killed.
  @starve ~S"""
  {:ok, peer} = Tame.Peer.start([])
  spec = Tame.Contention.Plan.times(1000, :default)
  spec = Map.merge(spec, %{job: {:tame_spin, :spin_inline, [100_000_000]}, jobs: 50})
  Tame.Peer.cast(peer, :tame_contention, :run, [self(), :cell, spec])

  # What it says later may never come out of it.
  receive do
    {:tame_contention, :cell, {:hello, _}} -> Process.sleep(spec.lead_ms + 1000)
  end

  IO.puts("peer #{peer.os_pid} vm #{System.pid()}")
  Process.sleep(:infinity)
  """

  test "nothing is left of a starved peer whose lab got SIGKILL" do
    vm = start_vm(@starve, %{})
    {peer, vm_pid} = pids(vm)
    refute gone?(peer)
    signal(vm_pid, "KILL")
    await_gone(vm_pid)
    await_gone(peer)
  end

  defp pids(vm) do
    receive do
      {^vm, {:data, {:eol, "peer " <> line}}} ->
        [peer, "vm", vm_pid] = String.split(line)
        {peer, vm_pid}

      {^vm, {:data, _}} ->
        pids(vm)

      {^vm, {:exit_status, status}} ->
        flunk("the VM ended with #{status}")
    after
      120_000 -> flunk("no peer within two minutes")
    end
  end

  test "a cell that fails keeps the others in the JSON and gives its name", %{folder: folder} do
    path = Path.join(folder, "out.json")
    result = Tame.ContentionFixture.result()
    failed = Tame.ContentionFixture.update(result, "thread", %{tried?: true})

    assert Tame.Contention.ok?(result)
    refute Tame.Contention.ok?(failed)
    File.write!(path, Tame.Contention.Format.json(failed))

    assert File.read!(path) =~
             ~s("placement":"thread","duration_us":1000,"multiplier":1,"jobs":2,"status":"failed")
  end
end
