defmodule Tame.FakeMethods do
  @moduledoc """
  Methods for the tests of the lab, each with one way to behave or misbehave.
  """

  defmodule Good do
    @moduledoc "Returns the term."
    use Tame.Latency.Method,
      id: :good,
      isolation: :none,
      data_type: "Erlang term",
      context_switch: "none"

    @impl true
    def open, do: {:ok, nil}
    @impl true
    def echo(nil, term), do: term
    @impl true
    def close(nil), do: :ok
  end

  defmodule Recorder do
    @moduledoc "Like Good, but tells the process registered as :recorder of every call, with its term, and of its close."
    use Tame.Latency.Method,
      id: :recorder,
      isolation: :none,
      data_type: "Erlang term",
      context_switch: "none"

    @impl true
    def open, do: {:ok, nil}

    @impl true
    def echo(nil, term) do
      send(:recorder, {:echo, :recorder, term})
      term
    end

    @impl true
    def close(nil) do
      send(:recorder, {:closed, :recorder})
      :ok
    end
  end

  defmodule OtherRecorder do
    @moduledoc "A second Recorder, to see the turns change."
    use Tame.Latency.Method,
      id: :other,
      isolation: :none,
      data_type: "Erlang term",
      context_switch: "none"

    @impl true
    def open, do: {:ok, nil}

    @impl true
    def echo(nil, term) do
      send(:recorder, {:echo, :other, term})
      term
    end

    @impl true
    def close(nil), do: :ok
  end

  defmodule Skipped do
    @moduledoc "Cannot start on this machine."
    use Tame.Latency.Method,
      id: :skipped,
      isolation: :network,
      data_type: "none",
      context_switch: "none"

    @impl true
    def open, do: {:skip, "no such thing here"}
    @impl true
    def echo(_, term), do: term
    @impl true
    def close(_), do: :ok
  end

  defmodule Raising do
    @moduledoc "Fails after a hundred calls."
    use Tame.Latency.Method,
      id: :raising,
      isolation: :process,
      data_type: "none",
      context_switch: "none"

    @impl true
    def open, do: {:ok, :counters.new(1, [])}

    @impl true
    def echo(counter, term) do
      :counters.add(counter, 1, 1)
      if :counters.get(counter, 1) > 100, do: raise("the other side is gone"), else: term
    end

    @impl true
    def close(_), do: :ok
  end

  defmodule Different do
    @moduledoc "Returns something else."
    use Tame.Latency.Method,
      id: :different,
      isolation: :process,
      data_type: "none",
      context_switch: "none"

    @impl true
    def open, do: {:ok, nil}
    @impl true
    def echo(nil, term), do: {:changed, term}
    @impl true
    def close(nil), do: :ok
  end
end
