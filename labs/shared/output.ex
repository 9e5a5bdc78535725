defmodule Tame.Output do
  @moduledoc """
  The files that tasks write, whole or not at all.

  A file is written beside its target and renamed over it, so the old one stays until the new one is whole, with the
  old one's permissions and owner. A link stays, and the file that it leads to is replaced. What is no regular file (a
  device, a FIFO) cannot be replaced: it is written to as it is. `-` is standard output; everything else that the
  process prints goes to standard error then.
  """

  @stdout_names ~w(- /dev/stdout /dev/fd/1 /proc/self/fd/1)

  # In the process dictionary: the standard output that a file has taken, and the file that is not whole yet.
  @taken {__MODULE__, :taken}
  @unfinished {__MODULE__, :unfinished}

  # How often to look whether who reads standard output has read all.
  @look_ms 5

  # As many as Linux follows.
  @most_links 40

  @doc """
  Whether `write/2` would be able to write `path` now: a long run asks before it starts, not when it has something to
  lose. Leaves nothing behind. `:ok` without a path. Takes standard output where the path is `-`; only one can.
  """
  @spec check(nil | Path.t()) :: :ok | {:error, String.t()}
  def check(nil), do: :ok

  def check(path) when path in @stdout_names do
    if Process.get(@taken) do
      {:error, "cannot write #{inspect(path)}: another output is standard output already"}
    else
      Process.put(@taken, Process.group_leader())
      Process.group_leader(self(), Process.whereis(:standard_error))
      :ok
    end
  end

  def check(path) do
    with {:ok, {:replace, file}} <- target(path), :ok <- try_beside(file) do
      :ok
    else
      {:ok, {:in_place, _}} -> :ok
      {:error, reason} -> refused(path, reason)
    end
  end

  @doc """
  Whether no two of these outputs are one file, also by a link or through another name of its folder: only the one that is
  written last would be left. Asked before anything is measured, as `check/1` is. What is no regular file takes several.
  """
  @spec apart([nil | Path.t()]) :: :ok | {:error, String.t()}
  def apart(paths) do
    named = for path <- paths, path != nil, path not in @stdout_names, do: {place(path), path}

    case named -- Enum.uniq_by(named, &elem(&1, 0)) do
      [] ->
        :ok

      [{place, path} | _] ->
        {_, first} = List.keyfind(named, place, 0)

        {:error,
         "cannot write #{inspect(path)}: another output, #{inspect(first)}, is the same file"}
    end
  end

  @doc "Whether `path`, as an output, would replace the file `other`."
  @spec replaces?(Path.t(), Path.t()) :: boolean()
  def replaces?(path, other), do: place(path) == place(other)

  @doc "Whether `path`, as an output, is a file that stays: not standard output, no device and no FIFO."
  @spec file?(Path.t()) :: boolean()
  def file?(path) do
    case target(path) do
      {:ok, :stdout} -> false
      {:ok, {:in_place, _}} -> false
      _file_or_none -> true
    end
  end

  @doc """
  Writes `data` to `path`. The error is one line that names the path. Without a path nothing is written; a function,
  which makes the data, is not called then.
  """
  @spec write(nil | Path.t(), iodata() | (() -> iodata())) :: :ok | {:error, String.t()}
  def write(nil, _data), do: :ok
  def write(path, data) when is_function(data, 0), do: write(path, data.())

  def write(path, data) do
    with {:ok, target} <- target(path), :ok <- put(target, data) do
      :ok
    else
      {:error, reason} -> refused(path, reason)
    end
  end

  @doc "As `write/2` of what is not complete yet, where a later `write/2` will replace it; elsewhere nothing is written."
  @spec write_early(nil | Path.t(), iodata() | (() -> iodata())) :: :ok | {:error, String.t()}
  def write_early(nil, _data), do: :ok

  def write_early(path, data) do
    case target(path) do
      {:ok, {:replace, _}} -> write(path, data)
      {:ok, _} -> :ok
      {:error, reason} -> refused(path, reason)
    end
  end

  @doc "As `check/1`, of a folder that files are to be written into. It may be missing, and so may those above it."
  @spec check_folder(nil | Path.t()) :: :ok | {:error, String.t()}
  def check_folder(nil), do: :ok

  def check_folder(path) do
    there = nearest(path)

    with true <- path not in @stdout_names and File.dir?(there),
         :ok <- try_beside(Path.join(there, "any")) do
      :ok
    else
      false -> refused(path, :enotdir)
      {:error, reason} -> refused(path, reason)
    end
  end

  @doc "Makes a folder that `check_folder/1` found possible, with those above it that are missing."
  @spec make_folder(Path.t()) :: :ok | {:error, String.t()}
  def make_folder(path) do
    with {:error, reason} <- File.mkdir_p(path), do: refused(path, reason)
  end

  @doc "Calls `fun`. Standard output that a file takes meanwhile is given back after it."
  @spec around((() -> value)) :: value when value: term()
  def around(fun) do
    leader = Process.group_leader()

    try do
      fun.()
    after
      Process.delete(@taken)
      Process.group_leader(self(), leader)
    end
  end

  @doc "Removes the file that a process has begun to write, if there is one. For one who is about to halt the VM."
  @spec abandon(pid()) :: :ok
  def abandon(pid) do
    with {:dictionary, entries} <- Process.info(pid, :dictionary),
         {_, beside} <- List.keyfind(entries, @unfinished, 0) do
      _ = File.rm(beside)
    end

    :ok
  end

  # ---- where to, and how ----------------------------------------------------------------------------

  defp target(path) when path in @stdout_names, do: {:ok, :stdout}

  defp target(path) do
    case File.stat(path) do
      {:ok, %{type: :directory}} -> {:error, :eisdir}
      {:ok, %{access: access}} when access not in [:write, :read_write] -> {:error, :eacces}
      {:ok, %{type: :regular}} -> followed(path, @most_links)
      {:ok, _} -> {:ok, {:in_place, path}}
      {:error, :enoent} -> path |> followed(@most_links) |> made()
      {:error, reason} -> {:error, reason}
    end
  end

  defp followed(_path, 0), do: {:error, :eloop}

  # An open file of a process is no link, though it looks like one: who holds it goes on with what it was.
  defp followed("/proc/" <> _ = path, _links), do: present(path, :in_place)
  defp followed("/dev/fd/" <> _ = path, _links), do: present(path, :in_place)

  defp followed(path, links) do
    case File.read_link(path) do
      {:ok, to} -> to |> Path.absname(Path.dirname(path)) |> followed(links - 1)
      {:error, _} -> present(path, :replace)
    end
  end

  defp present(path, how) do
    folder = Path.dirname(path)

    cond do
      not File.exists?(folder) -> {:error, {:no_folder, folder}}
      not File.dir?(folder) -> {:error, :enotdir}
      true -> {:ok, {how, path}}
    end
  end

  # What is written to as it is has to be there: nobody makes a file in /proc.
  defp made({:ok, {:in_place, _}}), do: {:error, :enoent}
  defp made(target), do: target

  # What tells two files apart, also those that are not there yet: the folder itself and the name in it.
  defp place(path) do
    case target(path) do
      {:ok, {:replace, file}} -> place_in_folder(file)
      {:ok, _} -> make_ref()
      {:error, _} -> place_in_folder(path)
    end
  end

  defp place_in_folder(path) do
    path = path |> Path.absname() |> String.trim_trailing("/")

    case File.stat(Path.dirname(path)) do
      {:ok, folder} -> {folder.major_device, folder.inode, Path.basename(path)}
      {:error, _} -> path
    end
  end

  # The path itself, or what is there of those above it. A link that leads nowhere is there: no folder is made of it.
  defp nearest(path) do
    case File.lstat(path) do
      {:ok, _} -> path
      {:error, _} -> path |> Path.dirname() |> nearest()
    end
  end

  # In the same folder, so that the rename stays within one file system.
  defp beside(path) do
    Path.join(Path.dirname(path), ".#{Path.basename(path)}.#{System.pid()}.part")
  end

  defp try_beside(path) do
    with :ok <- File.write(beside(path), ""), do: File.rm(beside(path))
  end

  # ---- writing --------------------------------------------------------------------------------------

  defp put(:stdout, data) do
    user = Process.whereis(:user)

    case Process.get(@taken) || Process.group_leader() do
      ^user -> put_descriptor(1, data)
      device -> put_device(device, data)
    end
  end

  defp put({:in_place, path}, data) do
    with {:ok, file} <- :file.open(path, [:append, :raw, :binary]) do
      written = :file.write(file, data)
      closed = :file.close(file)
      if written == :ok, do: closed, else: written
    end
  end

  defp put({:replace, path}, data) do
    beside = beside(path)
    Process.put(@unfinished, beside)

    with :ok <- File.write(beside, ""),
         :ok <- like(beside, File.stat(path)),
         :ok <- File.write(beside, data, [:sync]),
         :ok <- File.rename(beside, path) do
      :ok
    else
      {:error, reason} ->
        _ = File.rm(beside)
        {:error, reason}
    end
  after
    Process.delete(@unfinished)
  end

  # The device :user does not say whether it could write; a port does, and takes bytes as they are.
  defp put_descriptor(number, data) do
    port = Port.open({:fd, number, number}, [:out, :binary])
    monitor = Port.monitor(port)
    Process.unlink(port)
    # A port that is gone already is told of by the monitor too.
    _ = :erlang.port_command(port, data)
    written(port, monitor)
  rescue
    ArgumentError -> {:error, :epipe}
  end

  defp written(port, monitor) do
    case Port.info(port, :queue_size) do
      {:queue_size, 0} ->
        Port.demonitor(monitor, [:flush])
        Port.close(port)
        :ok

      _ ->
        receive do
          {:DOWN, ^monitor, :port, ^port, reason} -> {:error, reason}
        after
          @look_ms -> written(port, monitor)
        end
    end
  end

  # The bytes as they are, whatever the device's encoding is.
  defp put_device(device, data) do
    encoding = :io.getopts(device)[:encoding]

    with :ok <- :io.setopts(device, encoding: :latin1),
         :ok <- :file.write(device, data),
         do: :io.setopts(device, encoding: encoding)
  end

  # Only root can give a file away; for anybody else the new file is their own.
  defp like(beside, {:ok, old}) do
    _ = File.chown(beside, old.uid)
    _ = File.chgrp(beside, old.gid)
    File.chmod(beside, Bitwise.band(old.mode, 0o7777))
  end

  defp like(_beside, {:error, :enoent}), do: :ok
  defp like(_beside, {:error, reason}), do: {:error, reason}

  # ---- words ----------------------------------------------------------------------------------------

  defp refused(path, reason),
    do: {:error, "cannot write #{inspect(to_string(path))}: #{why(reason)}"}

  defp why({:no_folder, folder}), do: "there is no folder #{folder}"
  defp why(reason), do: to_string(:file.format_error(reason))
end
