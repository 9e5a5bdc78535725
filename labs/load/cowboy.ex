defmodule Tame.Load.Cowboy do
  @moduledoc """
  Where cowboy is: among the project's dependencies, in the folder that the environment variable `TAME_COWBOY` names (one with
  a folder for each of cowboy, cowlib and ranch, as `tools/cowboy` makes it), or where Debian's RabbitMQ has it.
  """

  @applications ~w(cowboy cowlib ranch)
  @rabbit "/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins"

  @doc "Folders of code that a VM needs besides its own for cowboy: none where there is no cowboy, or where it is in the path."
  @spec code_path() :: [Path.t()]
  def code_path do
    with {:ok, folders} <- find(), do: folders, else: (_ -> [])
  end

  @doc "The same, or a line that says where to get it."
  @spec find() :: {:ok, [Path.t()]} | {:error, String.t()}
  def find do
    cond do
      :code.where_is_file(~c"ssl.app") == :non_existing ->
        {:error, "cowboy needs OTP's ssl, which is not here: install Debian's erlang-ssl"}

      :code.where_is_file(~c"cowboy.beam") == :non_existing ->
        found(List.wrap(System.get_env("TAME_COWBOY")) ++ Path.wildcard(@rabbit))

      true ->
        {:ok, []}
    end
  end

  defp found(folders) do
    Enum.find_value(folders, {:error, missing()}, fn folder ->
      ebins = Enum.flat_map(@applications, &Path.wildcard("#{folder}/#{&1}{,-*}/ebin"))
      if length(ebins) == length(@applications), do: {:ok, ebins}
    end)
  end

  defp missing do
    "there is no cowboy here: add {:cowboy, \"~> 2.8\"} to the project's deps, or on Debian set TAME_COWBOY to the folder that " <>
      "tools/cowboy of tame's repository prints, or choose another --server"
  end
end
