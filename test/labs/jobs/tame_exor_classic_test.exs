defmodule Tame.ExorClassicTest do
  use ExUnit.Case, async: true

  @moduletag isolation: :shared

  # Around the vector lengths, one page, and past the classic form's first stretch of 4 MiB.
  @sizes [0, 1, 15, 16, 17, 63, 64, 65, 4095, 4096, 65_537, 4_194_304, 4_194_305, 9_000_001]

  defp random(size), do: :crypto.strong_rand_bytes(size)

  for name <- [:exor_classic, :exor_loop] do
    describe "#{name}/2" do
      test "is the exclusive or, of any size" do
        for size <- @sizes do
          {a, b} = {random(size), random(size)}
          assert apply(:tame_exor_classic, unquote(name), [a, b]) == :crypto.exor(a, b)
        end
      end

      test "takes sub-binaries that start anywhere" do
        a = random(1000)

        for from <- 1..9 do
          part = binary_part(a, from, 900)
          <<_::3, bits::binary-900, _::5, _::binary>> = a
          right = :crypto.exor(part, bits)
          assert apply(:tame_exor_classic, unquote(name), [part, bits]) == right
        end
      end

      test "raises badarg for what is no binary and for sizes that differ" do
        for arguments <- [[<<1>>, :a], [:a, <<1>>], [<<1>>, <<>>], [<<1::3>>, <<1::3>>]] do
          assert_raise ArgumentError, fn ->
            apply(:tame_exor_classic, unquote(name), arguments)
          end
        end
      end
    end
  end

  test "memcpy/1 copies a binary of any size and raises badarg for anything else" do
    for size <- @sizes do
      a = random(size)
      assert :tame_exor_classic.memcpy(a) == a
    end

    assert_raise ArgumentError, fn -> :tame_exor_classic.memcpy(~c"abc") end
  end

  test "a caller killed between two slices leaves nothing behind that hurts" do
    a = :binary.copy(<<7>>, 32_000_000)
    test = self()

    for _ <- 1..20 do
      {pid, monitor} =
        spawn_monitor(fn ->
          send(test, :started)
          :tame_exor_classic.exor_classic(a, a)
        end)

      assert_receive :started, 5000
      Process.exit(pid, :kill)
      assert_receive {:DOWN, ^monitor, :process, ^pid, reason}, 5000
      assert reason in [:killed, :normal]
    end

    assert :tame_exor_classic.exor_classic("abc", "abc") == <<0, 0, 0>>
  end
end
