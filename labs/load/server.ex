defmodule Tame.Load.Server do
  @moduledoc """
  A server that the load lab can drive: two functions, in Elixir or in Erlang. It runs in a VM of its own, which has this
  project's code path.

  The lab asks for `/hello` and for `/job`. A server gives the path to `:tame_load_work.answer/1`, which does the job, counts,
  and returns status and body:

      defmodule MyServer do
        @behaviour Tame.Load.Server

        @impl true
        def protocols, do: [:h1]

        @impl true
        def start(port, :h1) do
          {:ok, _} = Application.ensure_all_started(:plug_cowboy)
          {:ok, _} = Plug.Cowboy.http(MyPlug, [], port: port, ip: {127, 0, 0, 1})
          {:ok, port}
        end
      end

      defmodule MyPlug do
        def init(options), do: options

        def call(conn, _) do
          {status, body} = :tame_load_work.answer(conn.request_path)
          Plug.Conn.send_resp(conn, status, body)
        end
      end

  and then

      $ mix tame.load --server MyServer --port 8090

  One that does its own work for these paths is driven as well; the lab cannot then compare what the server has counted with
  what its clients saw, and `--job` and `--placements` mean nothing there.
  """

  @typedoc "HTTP/1.1, or HTTP/2 that a client begins at once (h2c with prior knowledge)."
  @type protocol :: :h1 | :h2

  @doc "What it speaks."
  @callback protocols() :: [protocol()]

  @doc """
  Listens on this port of 127.0.0.1, or on any when it is 0; returns the one it listens on. A server that is a program of its
  own, which ends with a port of the calling process, returns its OS process too: then that one's CPU is what a request costs.
  """
  @callback start(port :: 0..65535, protocol()) ::
              {:ok, 1..65535} | {:ok, 1..65535, os_pid :: String.t()} | {:error, term()}
end
