defmodule Tame.Test.PeerVm do
  @moduledoc false
  # A VM of its own, with our code, by its standard input and output. In a namespace of OS processes of its
  # own too: what is tried in it might kill any process of this machine, if it had a mistake.

  # Raises where no namespace can be made.
  def start_alone(arguments \\ []) do
    paths = Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
    root = if File.stat!("/proc/self").uid == 0, do: [], else: [~c"--user", ~c"--map-root-user"]
    # A shell is the first process there, because nothing in there could kill that.
    shell = [~c"/bin/sh", ~c"-c", ~c"\"$0\" \"$@\"; exit $?", :os.find_executable(~c"erl")]
    flags = flags(root)
    exec = {:os.find_executable(~c"unshare"), root ++ flags ++ shell}
    options = %{connection: :standard_io, args: arguments ++ paths, exec: exec}
    {:ok, peer, _} = :peer.start_link(options)
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
