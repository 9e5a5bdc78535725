defmodule Tame.Payload do
  @moduledoc """
  The term that a lab sends: a binary of a given size, or the value of an Elixir expression.
  """

  # Each method holds the term, an encoded copy and what came back, and the other side has as much
  # again: a payload over this share of free memory would end in swapping or a dead VM.
  @share_of_memory 32

  @doc """
  A binary of `bytes` bytes, or an error where that does not fit into memory `available` times over.
  """
  @spec bytes(non_neg_integer(), pos_integer()) :: {:ok, binary()} | {:error, String.t()}
  def bytes(bytes, available \\ available_bytes()) do
    case fits(bytes, available) do
      :ok -> {:ok, :binary.copy(<<1>>, bytes)}
      {:error, why} -> {:error, "--bytes #{bytes}: #{why}"}
    end
  end

  @doc """
  The value of an Elixir expression.

  The expression is tried first in a throw-away emulator with bounded memory and time, because one that asks for more
  memory than there is ends the emulator that evaluates it, without an exception.
  """
  @spec expression(String.t(), pos_integer()) :: {:ok, term()} | {:error, String.t()}
  def expression(text, available \\ available_bytes()) do
    with {:ok, quoted} <- parse(text),
         {:ok, bytes} <- try_out(text, available),
         :ok <- fits(bytes, available) do
      evaluate(quoted)
    end
    |> case do
      {:ok, term} -> {:ok, term}
      {:error, why} -> {:error, "--term #{inspect(text)}: #{why}"}
    end
  end

  defp parse(text) do
    case Code.string_to_quoted(text) do
      {:ok, quoted} ->
        {:ok, quoted}

      {:error, {_, message, token}} ->
        message = if is_tuple(message), do: Tuple.to_list(message), else: message
        {:error, "expected an Elixir expression, got: " <> one_line("#{message}#{token}")}
    end
  end

  defp evaluate(quoted) do
    {term, _} = Code.eval_quoted(quoted)
    {:ok, term}
  rescue
    error -> {:error, "raised " <> one_line(Exception.message(error))}
  end

  # The child prints the size of its term; its memory is bounded by the shell that starts it, its
  # time by its own timer. A crash dump of it would be of no use to anybody. From Elixir 1.15 on a
  # CompileError only says that its reasons were logged; they are to be had as diagnostics.
  @child """
  :timer.apply_after(10_000, :erlang, :halt, [9])
  [text] = System.argv()

  evaluate = fn ->
    try do
      {term, _} = Code.eval_string(text)
      {"size ", Integer.to_string(:erlang.external_size(term))}
    rescue
      error -> {"raised ", Exception.message(error)}
    catch
      kind, reason -> {"raised ", Exception.format_banner(kind, reason)}
    end
  end

  {{kind, words}, diagnostics} =
    if function_exported?(Code, :with_diagnostics, 1),
      do: apply(Code, :with_diagnostics, [evaluate]),
      else: {evaluate.(), []}

  reasons = for %{severity: :error, message: message} <- diagnostics, do: message
  IO.write(kind <> if(kind == "raised ", do: List.first(reasons) || words, else: words))
  """

  # What an idle emulator maps without using it.
  @idle_emulator_kb 8 * 1024 * 1024

  defp try_out(text, available) do
    limit_kb = @idle_emulator_kb + div(available, 4 * 1024)
    script = "ulimit -v #{limit_kb} 2>/dev/null; exec \"$@\" </dev/null 2>/dev/null"
    command = [elixir(), "-e", @child, "--", text]

    case System.cmd("/bin/sh", ["-c", script, "sh" | command],
           env: [{"ERL_CRASH_DUMP_SECONDS", "0"}]
         ) do
      {"size " <> size, 0} -> {:ok, String.to_integer(size)}
      {"raised " <> why, 0} -> {:error, "raised " <> one_line(why)}
      {_, 9} -> {:error, "not evaluated within 10 s"}
      {_, status} -> {:error, ended(status)}
    end
  end

  # An emulator that gets no memory ends with 1 or by a signal; who halts chooses any status.
  defp ended(status) when status == 1 or status > 128,
    do: "does not fit in memory, or ended its VM: status #{status}"

  defp ended(status), do: "ended its VM with status #{status}, expected a term"

  defp elixir do
    System.find_executable("elixir") || Path.join(:code.lib_dir(:elixir), "../../bin/elixir")
  end

  defp fits(bytes, available) do
    limit = div(available, @share_of_memory)

    if bytes <= limit do
      :ok
    else
      {:error,
       "does not fit in memory: #{bytes} bytes, expected at most #{limit} (1/#{@share_of_memory} of what is free)"}
    end
  end

  @doc "Memory that this machine can still give, in bytes; 4 GiB where it does not say."
  @spec available_bytes() :: pos_integer()
  def available_bytes do
    with {:ok, text} <- File.read("/proc/meminfo"),
         [_, kb] <- Regex.run(~r/^MemAvailable:\s*(\d+) kB/m, text) do
      String.to_integer(kb) * 1024
    else
      _ -> 4 * 1024 * 1024 * 1024
    end
  end

  defp one_line(text), do: text |> to_string() |> String.split("\n") |> hd()
end
