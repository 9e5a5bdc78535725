defmodule IsolatedApp do
  @moduledoc "Reads JSON with jiffy, whose C code runs in an OS process of its own."

  @doc "The term that a JSON text stands for, or why there is none. A crash of jiffy is such a reason."
  @spec parse(binary()) :: {:ok, term()} | {:error, term()}
  def parse(text) do
    {:ok, :jiffy.decode(text, [:return_maps])}
  rescue
    error in ErlangError -> {:error, error.original}
  end

  @doc "Kills the OS process that jiffy runs in, and asks before, at that moment and after."
  @spec demo() :: [before: term(), meanwhile: term(), later: term(), same_process: boolean()]
  def demo do
    before = parse(~s({"a": 1}))
    pid = os_pid()
    {_, 0} = System.cmd("sh", ["-c", "kill -9 #{pid}"])
    meanwhile = parse(~s({"a": 1}))
    later = parse(~s({"a": 1}))
    [before: before, meanwhile: meanwhile, later: later, same_process: os_pid() == pid]
  end

  defp os_pid do
    %{jiffy: %{hosts: [%{os_pid: pid}]}} = Tame.info()
    pid
  end
end
