defmodule Tame.Latency.Program do
  @moduledoc false
  # A program on the other side of a port, from its start to its exit status.
  #
  # The process that opens it owns it. The program watches its standard input, so it ends when it is closed here, when
  # the owner dies, and when the VM ends in any way.

  @enforce_keys [:port, :os_pid, :name, :goodbye]
  defstruct [:port, :os_pid, :name, :goodbye, :stdin]

  @type t :: %__MODULE__{
          port: port(),
          os_pid: non_neg_integer(),
          name: String.t(),
          goodbye: iodata(),
          stdin: nil | :file.fd()
        }

  # A program of ours ends within a millisecond of its goodbye, a Java machine within some tens.
  @end_ms 5_000

  # Of what a program writes, the lines that are kept to explain its end.
  @lines 5

  @doc "Options for a program that speaks lines: what it prints explains its end."
  def lines, do: [:stderr_to_stdout, line: 1_000]

  @doc "Starts a program. One with `packet: 4` is ended by an empty frame, any other by a newline."
  @spec open(Path.t(), [String.t()], list()) :: {:ok, t()} | {:error, String.t()}
  def open(path, args, options) do
    port =
      Port.open(
        {:spawn_executable, String.to_charlist(path)},
        [:binary, :exit_status, :use_stdio, args: args] ++ options
      )

    goodbye = if options[:packet], do: "", else: "\n"
    program = %__MODULE__{port: port, os_pid: nil, name: Path.basename(path), goodbye: goodbye}

    case Port.info(port, :os_pid) do
      {:os_pid, os_pid} -> {:ok, %{program | os_pid: os_pid}}
      nil -> {:error, how_it_ended(program)}
    end
  rescue
    error in ErlangError ->
      {:error, "#{path} does not start: #{:file.format_error(error.original)}"}
  end

  @doc """
  Makes sure that writing to a program which was killed does not hurt.

  A write to a pipe that nobody reads breaks the port with `epipe`: an exit signal that ends its
  owner too, and the exit status is lost. So we hold the pipe's reading end as well, without ever
  reading. Works where `/proc` is; the program must run already, or the pipe is not yet its own.
  """
  @spec hold_stdin(t()) :: t()
  def hold_stdin(%__MODULE__{} = program) do
    case :file.open("/proc/#{program.os_pid}/fd/0", [:read, :raw]) do
      {:ok, stdin} -> %{program | stdin: stdin}
      {:error, _} -> program
    end
  end

  @doc "Raises with the way in which the program ended, which it did, or will do presently."
  @spec ended!(t()) :: no_return()
  def ended!(%__MODULE__{} = program), do: raise(how_it_ended(program))

  @doc "What ended, how, and its last lines."
  @spec how_it_ended(t()) :: String.t()
  def how_it_ended(%__MODULE__{port: port} = program) do
    receive do
      {^port, {:exit_status, status} = exit_status} ->
        # Put back, for the next one that asks: another call, or close/1.
        send(self(), {port, exit_status})
        "#{name(program)} ended with #{status(status)}#{last_lines(port)}"
    after
      @end_ms -> "#{name(program)} does not answer any more#{last_lines(port)}"
    end
  end

  @doc "Ends the program and returns when it is gone."
  @spec close(t()) :: :ok
  def close(%__MODULE__{port: port, goodbye: goodbye} = program) do
    command(port, goodbye)

    receive do
      {^port, {:exit_status, _}} -> :ok
    after
      @end_ms -> kill(program)
    end

    Process.unlink(port)
    close_port(port)
    if program.stdin, do: :file.close(program.stdin)
    forget(port)
  end

  # Stopped, or stuck in the kernel.
  defp kill(program) do
    System.cmd("/bin/sh", ["-c", "kill -KILL #{program.os_pid}"], stderr_to_stdout: true)
    port = program.port

    receive do
      {^port, {:exit_status, _}} -> :ok
    after
      @end_ms -> :ok
    end
  end

  defp command(port, data) do
    Port.command(port, data)
  rescue
    # The port closes itself after its exit status.
    ArgumentError -> false
  end

  defp close_port(port) do
    Port.close(port)
  rescue
    ArgumentError -> true
  end

  defp forget(port) do
    receive do
      {^port, _} -> forget(port)
      {:EXIT, ^port, _} -> forget(port)
    after
      0 -> :ok
    end
  end

  defp name(%__MODULE__{os_pid: nil, name: name}), do: name
  defp name(%__MODULE__{os_pid: os_pid, name: name}), do: "#{name} (OS process #{os_pid})"

  # As a shell counts: 128 and the signal's number.
  defp status(status) when status > 128, do: "exit status #{status} (signal #{status - 128})"
  defp status(status), do: "exit status #{status}"

  defp last_lines(port) do
    case lines(port, []) do
      [] -> ""
      lines -> ": " <> (lines |> Enum.take(@lines) |> Enum.reverse() |> Enum.join("; "))
    end
  end

  defp lines(port, lines) do
    receive do
      {^port, {:data, {_eol, line}}} -> lines(port, [line | lines])
    after
      0 -> lines
    end
  end
end
