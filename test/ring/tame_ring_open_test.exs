defmodule Tame.RingOpenTest do
  # Who opens a ring and closes it, what is refused, and what of it others can see.
  use ExUnit.Case, async: true

  alias Tame.{Await, OsThreads}
  alias Tame.Test.RingHost

  @moduletag isolation: :shared

  @sanitized System.get_env("TAME_NATIVE_DIR") != nil

  describe "opening" do
    test "refuses what is no ring" do
      host = RingHost.start()
      assert :tame_ring.open(host.os_pid, 999, %{}) == {:error, :no_such_ring}
      assert :tame_ring.open(999_999_999, 3, %{}) == {:error, :no_such_ring}
      assert :tame_ring.open(host.os_pid, 0, %{}) == {:error, :no_such_ring}

      # Files on disks, in memory but with a path, and whatever serves them are not even opened.
      for folder <- [System.tmp_dir!(), "/dev/shm"] do
        path = Path.join(folder, "tame_ring_#{System.pid()}")
        File.write!(path, :binary.copy("x", 100_000))
        {:ok, file} = :prim_file.open(path, [:read, :write, :raw])
        fd = open_fd(path)

        assert :tame_ring.open(String.to_integer(System.pid()), fd, %{}) ==
                 {:error, :no_such_ring}

        :prim_file.close(file)
        File.rm!(path)
      end
    end

    test "refuses a ring larger than allowed, and wrong options" do
      host = RingHost.start()
      open = &:tame_ring.open(host.os_pid, host.fd, &1)
      assert open.(%{max_bytes: 1_000_000}) == {:error, :too_large}
      assert open.(%{spin: 1}) == {:error, {:bad_option, :spin, 1}}
      assert open.(%{spin_us: -1}) == {:error, {:bad_option, :spin_us, -1}}
    end

    test "and closing leaves no descriptor, thread or file" do
      host = RingHost.start()
      RingHost.in_a_process(fn -> open_and_drop(host, 10) end)
      before = {fds(), OsThreads.count(), File.ls!("/dev/shm")}
      RingHost.in_a_process(fn -> open_and_drop(host, if(@sanitized, do: 100, else: 1000)) end)

      assert Await.until(fn ->
               # Ended readers are joined at the next opening.
               RingHost.in_a_process(fn -> open_and_drop(host, 1) end)
               near?(before, {fds(), OsThreads.count(), File.ls!("/dev/shm")})
             end)
    end
  end

  describe "the owner" do
    test "is who opened the ring: when it dies, callers are told, and later ones" do
      host = RingHost.start(~w(slots=2 workers=2))
      parent = self()

      owner =
        spawn(fn ->
          {:ok, ring} = :tame_ring.open(host.os_pid, host.fd, %{})
          send(parent, ring)
          Process.sleep(:infinity)
        end)

      assert_receive ring when is_reference(ring), 5000
      host = Map.put(host, :ring, ring)

      in_flight =
        for _ <- 1..2,
            do: Task.async(fn -> RingHost.call(host, :until_cancelled, [], :infinity) end)

      assert Await.until(fn -> :tame_ring.info(ring).slots_in_use == 2 end)
      in_line = Task.async(fn -> RingHost.call(host, :echo, [1], :infinity) end)
      assert Await.until(fn -> :tame_ring.info(ring).in_line == 1 end)
      Process.exit(owner, :kill)
      for task <- in_flight, do: assert(Task.await(task) == {:error, {:host_down, :owner_down}})
      assert Task.await(in_line) == {:error, :closed}
      assert RingHost.call(host, :echo, [1]) == {:error, :closed}
      refute_received _
    end

    test "that was a caller too, leaves no slot behind" do
      host = RingHost.start_ring(["workers=2"])
      RingHost.in_a_process(fn -> RingHost.call(host, :echo, [1]) end)
      assert RingHost.call(host, :echo, [2]) == {:value, 2}
    end
  end

  test "the memory is in no core dump, of neither side" do
    host = RingHost.start_ring()

    for os_pid <- [System.pid(), host.os_pid] do
      flags =
        File.read!("/proc/#{os_pid}/smaps")
        |> String.split(~r/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
        |> Enum.filter(&(&1 =~ "memfd:tame_ring"))
        |> Enum.map(&Regex.run(~r/VmFlags:.* dd\b/, &1))

      assert flags != []
      refute nil in flags
    end

    # The VM has the memory for as long as somebody has the ring.
    assert RingHost.call(host, :echo, [1]) == {:value, 1}
  end

  defp open_and_drop(_host, 0), do: :ok

  defp open_and_drop(host, count) do
    {:ok, ring} = :tame_ring.open(host.os_pid, host.fd, %{})
    if rem(count, 2) == 0, do: :tame_ring.close(ring, :test)
    if rem(count, 10) == 0, do: :erlang.garbage_collect()
    open_and_drop(host, count - 1)
  end

  defp open_fd(path) do
    Enum.find_value(File.ls!("/proc/self/fd"), fn fd ->
      match?({:ok, ^path}, File.read_link("/proc/self/fd/#{fd}")) && String.to_integer(fd)
    end)
  end

  # Other tests run beside this one; what would leak here leaks by the hundred.
  defp near?({fds, threads, shm}, {fds_now, threads_now, shm_now}) do
    fds_now - fds < 50 and threads_now - threads < 50 and shm_now -- shm == []
  end

  defp fds, do: length(File.ls!("/proc/self/fd"))
end
