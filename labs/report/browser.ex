defmodule Tame.Report.Browser do
  @moduledoc """
  Opens a page in the browser, by the program that the desktop has for it.
  """

  @openers ~w(xdg-open open)

  @doc "The program that opens pages here, or a line that says that there is none."
  @spec find() :: {:ok, Path.t()} | {:error, String.t()}
  def find do
    case Enum.find_value(@openers, &System.find_executable/1) do
      nil ->
        {:error,
         "--open: there is no #{Enum.join(@openers, " and no ")} here; open the page yourself"}

      opener ->
        {:ok, opener}
    end
  end

  @doc "Opens the page, if there is a program, and does not wait: some of them end when the browser does."
  @spec open(Path.t() | nil, Path.t()) :: :ok
  def open(nil, _page), do: :ok

  def open(opener, page) do
    {_, _} = System.cmd("sh", ["-c", ~S("$0" "$1" >/dev/null 2>&1 &), opener, Path.expand(page)])
    :ok
  end
end
