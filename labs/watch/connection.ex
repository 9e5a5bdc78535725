defmodule Tame.Watch.Connection do
  @moduledoc """
  A connection to the node that is watched, as a hidden node that listens nowhere, so that it needs no epmd of its own.

  A VM that is distributed already is used as it is.
  """

  @call_ms 10_000

  # A node that refuses says so at once; the VM gives up after 7 s.
  @slow_ms 5000

  # The module that is sent needs what came with it.
  @least_otp 25

  @doc """
  The node of a name that people write.

      iex> Tame.Watch.Connection.parse("app@db1.example.org")
      {:ok, :"app@db1.example.org"}

      iex> Tame.Watch.Connection.parse("app")
      {:error, "--node app: expected a node's name, as name@host"}
  """
  @spec parse(String.t()) :: {:ok, node()} | {:error, String.t()}
  def parse(text) do
    if text =~ ~r/^[^@\s]+@[^@\s]+$/u and String.length(text) < 256,
      do: {:ok, String.to_atom(text)},
      else: {:error, "--node #{text}: expected a node's name, as name@host"}
  end

  @doc "Connects; the error says what there is where the node was expected. Undone by `close/1`."
  @spec open(node(), String.t() | nil) :: {:ok, :ours | :found} | {:error, String.t()}
  def open(node, cookie) do
    with {:ok, whose} <- distribution(node) do
      if cookie, do: Node.set_cookie(node, String.to_atom(cookie))

      with :ok <- connect(node), :ok <- erlang?(node) do
        {:ok, whose}
      else
        {:error, why} ->
          close(whose)
          {:error, why}
      end
    end
  end

  @doc "Ends distribution, where it was begun for this."
  @spec close(:ours | :found) :: :ok
  def close(:found), do: :ok

  def close(:ours), do: Tame.Distributed.stop()

  @doc "Calls a function there."
  @spec call(node(), module(), atom(), [term()], pos_integer()) :: {:ok, term()} | {:error, term()}
  def call(node, module, function, args, timeout_ms \\ @call_ms) do
    {:ok, :erpc.call(node, module, function, args, timeout_ms)}
  catch
    _kind, {:erpc, why} -> {:error, why}
    _kind, {:exception, why, _stack} -> {:error, why}
    _kind, why -> {:error, why}
  end

  # Nodes with long names and nodes with short names do not connect to each other; a dot in the host's name tells
  # which one this is.
  defp distribution(node) do
    if Node.alive?() do
      {:ok, :found}
    else
      [_, host] = node |> Atom.to_string() |> String.split("@", parts: 2)

      {domain, here} =
        if host =~ ~r/[.:]/, do: {:longnames, "127.0.0.1"}, else: {:shortnames, "localhost"}

      name = :"tame_watch_#{System.pid()}_#{System.unique_integer([:positive])}@#{here}"
      options = %{name_domain: domain, hidden: true, dist_listen: false}

      case :net_kernel.start(name, options) do
        {:ok, _} -> {:ok, :ours}
        {:error, why} -> {:error, "distribution does not start: #{inspect(why, limit: 5)}"}
      end
    end
  end

  # What a failed connection prints is told in our words.
  defp connect(node) do
    %{level: level} = :logger.get_primary_config()
    :ok = :logger.set_primary_config(:level, :none)

    try do
      began = System.monotonic_time(:millisecond)

      if :net_kernel.connect_node(node) == true do
        :ok
      else
        {:error, "#{node}: #{why(node, System.monotonic_time(:millisecond) - began)}"}
      end
    after
      :logger.set_primary_config(:level, level)
    end
  end

  defp why(node, took_ms) do
    [name, host] = node |> Atom.to_string() |> String.split("@", parts: 2)
    charlist = String.to_charlist(host)

    with {:ok, _} <- :inet.getaddr(charlist, :inet),
         {:ok, names} <- :erl_epmd.names(charlist) do
      case List.keyfind(names, String.to_charlist(name), 0) do
        nil -> "there is no node #{name} on #{host}, where epmd knows #{known(names)}"
        {_, port} -> not_ours(charlist, port, took_ms)
      end
    else
      {:error, :address} -> "no epmd answers on #{host}: is a distributed node running there?"
      {:error, reason} -> "the host #{host} is not known (#{:inet.format_error(reason)})"
    end
  end

  defp known([]), do: "none"
  defp known(names), do: Enum.map_join(names, ", ", &to_string(elem(&1, 0)))

  # It is the watched node's schedulers that answer, which may be what is to be found out.
  defp not_ours(_host, _port, took_ms) when took_ms >= @slow_ms,
    do: "it did not answer the connection for #{took_ms} ms: are its schedulers held? Try again"

  defp not_ours(host, port, _took_ms) do
    case :gen_tcp.connect(host, port, [], 2000) do
      {:ok, socket} ->
        :gen_tcp.close(socket)

        "it refuses the connection: expected its cookie by --cookie, and a name as long or short as its own"

      {:error, reason} ->
        "epmd says port #{port}, which does not answer (#{:inet.format_error(reason)})"
    end
  end

  defp erlang?(node) do
    case call(node, :erlang, :system_info, [:otp_release], 5000) do
      {:ok, release} when is_list(release) ->
        if List.to_integer(release) >= @least_otp,
          do: :ok,
          else: {:error, "#{node}: runs OTP #{release}, expected #{@least_otp} or newer"}

      {_, why} ->
        {:error,
         "#{node}: is no Erlang VM that answers (#{inspect(why, limit: 5)}), expected OTP #{@least_otp} or newer"}
    end
  end
end
