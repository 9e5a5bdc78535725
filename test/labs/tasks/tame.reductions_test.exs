defmodule Mix.Tasks.Tame.ReductionsTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureIO
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Reductions
  alias Tame.Test.CLibrary

  @quick ~w(--only crypto_exor,exor_classic --bytes 100000 --rounds 1)

  setup do
    folder = CLibrary.tmp_dir!()
    %{folder: folder}
  end

  test "measures the variants asked for and prints them" do
    text = capture_io(fn -> Reductions.run(@quick) end)
    assert text =~ ~r/^command +mix tame.reductions --only crypto_exor,exor_classic --bytes/m
    assert text =~ ~r/^crypto_exor +at hand +\d.*\ncrypto_exor +fresh.*\nexor_classic +at hand +\d/m
    refute text =~ "exor_loop"
  end

  test "writes JSON with the fields of the format", %{folder: folder} do
    path = Path.join(folder, "out.json")
    capture_io(fn -> Reductions.run(@quick ++ ["--json", path]) end)

    json = assert_schema(path)
    assert %{"bytes" => 100_000, "rounds" => 1, "variants" => [_, variant]} = json
    assert %{"id" => "exor_classic", "status" => "ok", "reason" => :null} = variant
    assert is_number(variant["elapsed_us"]) and is_number(variant["longest_slice_us"])
  end

  test_refused(Reductions, [
    {~w(--only exor_loop,nope), ~s(unknown variant "nope", expected some of: crypto_exor, )},
    {~w(--round 5), "unknown switch --round, expected one of: --bytes, "},
    {~w(--rounds 0), "--rounds 0: expected a whole number of 1 or more"},
    {~w(--rounds ten), "--rounds ten: expected a whole number of 1 or more"},
    {~w(--bytes 0), "--bytes 0: expected a whole number of 1 or more"},
    {~w(--bytes -1), "--bytes -1: expected a whole number of 1 or more"},
    {~w(--bytes 99999999999999), "--bytes 99999999999999: does not fit in memory"},
    {~w(--only ,), "--only ,: expected at least one word"},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(more), ~s(unexpected word "more")}
  ])

  test "a variant that fails gives exit status 1 and the others' rows" do
    Application.put_env(:tame_labs, :reductions_variants, [Tame.FakeExor.variant(:wrong)])
    on_exit(fn -> Application.delete_env(:tame_labs, :reductions_variants) end)

    text =
      capture_io(fn ->
        argv = ~w(--only wrong,crypto_exor --bytes 1000 --rounds 1)
        assert catch_exit(Reductions.run(argv)) == {:shutdown, 1}
      end)

    assert text =~ ~r/^wrong  failed: what it returned is not the exclusive or of the two$/m
    assert text =~ ~r/^crypto_exor +at hand +\d/m
  end

  test "where no variant is there nothing was measured, which is no success" do
    variant = %{id: "nowhere", mfa: {:no_such_module, :exor}}
    Application.put_env(:tame_labs, :reductions_variants, [variant])
    on_exit(fn -> Application.delete_env(:tame_labs, :reductions_variants) end)

    text =
      capture_io(fn ->
        argv = ~w(--only nowhere --bytes 1000 --rounds 1)
        assert_refused(Reductions, argv, "nothing was measured: the output says why")
      end)

    assert text =~ ~r/^nowhere  skipped: there is no module no_such_module$/m
  end
end
