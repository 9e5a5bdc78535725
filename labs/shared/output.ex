defmodule Tame.Output do
  @moduledoc """
  Files written whole or not at all: beside the target first, then renamed.
  """

  @doc """
  Writes `data` to `path` in one step, making folders that are missing. The error is one line that
  names the path. Without a path nothing is written; a function, which makes the data, is not called then.
  """
  @spec write(nil | Path.t(), iodata() | (() -> iodata())) :: :ok | {:error, String.t()}
  def write(nil, _data), do: :ok
  def write(path, data) when is_function(data, 0), do: write(path, data.())

  def write(path, data) do
    beside = beside(path)

    with :ok <- not_a_folder(path),
         :ok <- File.mkdir_p(Path.dirname(path)),
         :ok <- File.write(beside, data),
         :ok <- File.rename(beside, path) do
      :ok
    else
      {:error, reason} ->
        _ = File.rm(beside)
        {:error, "cannot write #{inspect(to_string(path))}: #{:file.format_error(reason)}"}
    end
  end

  @doc """
  Whether `write/2` would be able to write `path` now: a long run asks before it starts, not when
  it has something to lose. Leaves nothing behind but folders that were missing. `:ok` without a path.
  """
  @spec check(nil | Path.t()) :: :ok | {:error, String.t()}
  def check(nil), do: :ok

  def check(path) do
    beside = beside(path)

    with :ok <- not_a_folder(path),
         :ok <- File.mkdir_p(Path.dirname(path)),
         :ok <- File.write(beside, "") do
      File.rm(beside)
    else
      {:error, reason} ->
        {:error, "cannot write #{inspect(to_string(path))}: #{:file.format_error(reason)}"}
    end
  end

  defp not_a_folder(path), do: if(File.dir?(path), do: {:error, :eisdir}, else: :ok)

  # In the same folder, so that the rename stays within one file system.
  defp beside(path) do
    Path.join(Path.dirname(path), ".#{Path.basename(path)}.#{System.pid()}.part")
  end
end
