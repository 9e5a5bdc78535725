defmodule Tame.Latency.Method do
  @moduledoc """
  One way to get a term to native code and back, as a module the latency lab can measure.

  The lab calls `c:open/0` in the process that will measure, then `c:echo/2` many times, then
  `c:close/1`. Only `c:echo/2` is timed. When the process dies instead, whatever `c:open/0` started
  must go with it: own it by a port or a link.

      defmodule MyApp.EchoMethod do
        use Tame.Latency.Method,
          id: :my_echo,
          isolation: :shared,
          data_type: "Erlang term",
          context_switch: "none"

        @impl true
        def open, do: {:ok, nil}

        @impl true
        def echo(nil, term), do: MyApp.Native.echo(term)

        @impl true
        def close(nil), do: :ok
      end

  The lab's own methods are listed in `Tame.Latency.Methods`; yours are added by
  `config :tame_labs, latency_methods: [MyApp.EchoMethod]`.
  """

  @typedoc "What a failure of the native side can take down: nothing (no native code), the VM, an OS process, a node."
  @type isolation :: :none | :shared | :process | :network

  @typedoc """
  What a method says of itself: `:data_type` is the form in which the term reaches the native
  side, `:context_switch` what the calling process goes through to get there.
  """
  @type description :: %{
          id: atom(),
          isolation: isolation(),
          data_type: String.t(),
          context_switch: String.t()
        }

  @type state :: term()

  @doc "What the method is; see `t:description/0`."
  @callback describe() :: description()

  @doc "Starts what the method needs. `{:skip, why}` where this machine lacks it, `{:error, why}` where it should have worked."
  @callback open() :: {:ok, state()} | {:skip, String.t()} | {:error, String.t()}

  @doc "Takes the term to the other side and returns what came back. Raises when nothing does."
  @callback echo(state(), term()) :: term()

  @doc "Ends what `c:open/0` started; nothing of it is left when this returns."
  @callback close(state()) :: :ok

  @doc false
  defmacro __using__(description) do
    quote do
      @behaviour Tame.Latency.Method

      @impl true
      def describe, do: Map.new(unquote(description))
    end
  end
end
