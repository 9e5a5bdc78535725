defmodule Tame.Test.PeerVm do
  @moduledoc false
  # A VM of its own, with our code, by its standard input and output.

  # Ends with the test that calls this, and the other way round. Options are those of peer.
  def start_link(options \\ %{}) do
    {:ok, peer, _} = :peer.start_link(with_our_code(options))
    peer
  end

  # Not linked: a VM that ends is what is tested. What is left of it is stopped after the test.
  def start(options \\ %{}) do
    {:ok, peer, _} = :peer.start(with_our_code(options))
    ExUnit.Callbacks.on_exit(fn -> if Process.alive?(peer), do: :peer.stop(peer) end)
    peer
  end

  # What a function of a module of scenarios returns there.
  def scenario(peer, module, name, args \\ []), do: :peer.call(peer, module, name, args, 600_000)

  defp with_our_code(options) do
    paths = Enum.map(Tame.Peer.code_path(), &to_charlist/1)
    Map.merge(%{connection: :standard_io}, Map.update(options, :args, paths, &(&1 ++ paths)))
  end

  # In a namespace of OS processes of its own too: what is tried in it might kill any process of this
  # machine, if it had a mistake. Raises where no namespace can be made.
  def start_alone(arguments \\ []) do
    root = if File.stat!("/proc/self").uid == 0, do: [], else: [~c"--user", ~c"--map-root-user"]
    # A shell is the first process there, because nothing in there could kill that.
    shell = [~c"/bin/sh", ~c"-c", ~c"\"$0\" \"$@\"; exit $?", :os.find_executable(~c"erl")]
    flags = flags(root)
    exec = {:os.find_executable(~c"unshare"), root ++ flags ++ shell}
    peer = start_link(%{args: arguments, exec: exec})
    {:ok, theirs} = :peer.call(peer, :file, :read_link, [~c"/proc/self/ns/pid"])

    if to_string(theirs) == File.read_link!("/proc/self/ns/pid") do
      raise "unshare made no namespace of OS processes"
    end

    peer
  end

  # The mounts in there are its own. In a root that was entered by chroot that cannot be asked for; such a
  # one is in a namespace of mounts of its own already (tools/matrix).
  defp flags(root) do
    flags = [~c"--pid", ~c"--fork", ~c"--kill-child", ~c"--mount-proc"]

    case System.cmd("unshare", Enum.map(root ++ flags, &to_string/1) ++ ["true"],
           stderr_to_stdout: true
         ) do
      {_, 0} -> flags
      _ -> [~c"--propagation", ~c"unchanged" | flags]
    end
  end
end
