defmodule Tame.Latency.Methods.NIF do
  @moduledoc false
  # What all NIF methods share: the library is bound when its module loads, there is nothing to
  # close, and a library that does not load is an error with the loader's words.

  defmacro __using__(description) do
    description = Keyword.merge([isolation: :shared, data_type: "Erlang term"], description)

    quote do
      use Tame.Latency.Method, unquote(description)

      @impl true
      defdelegate open, to: Tame.Latency.Methods.NIF

      @impl true
      def close(nil), do: :ok
    end
  end

  def open do
    with :ok <- load(:tame_echo_nif), :ok <- load(:tame_echo), do: {:ok, nil}
  end

  defp load(module) do
    case :code.ensure_loaded(module) do
      {:module, _} -> :ok
      {:error, why} -> {:error, "the NIF library #{library(module)} does not load: #{inspect(why)}"}
    end
  end

  defp library(module), do: :tame_labs_native.path(~c"#{module}.so")
end

defmodule Tame.Latency.Methods.NIFNormal do
  @moduledoc "A NIF that returns its argument, on the caller's scheduler."
  use Tame.Latency.Methods.NIF, id: :nif_normal, context_switch: "none"

  @impl true
  def echo(nil, term), do: :tame_echo_nif.echo(term)
end

defmodule Tame.Latency.Methods.NIFYielding do
  @moduledoc "One `enif_schedule_nif` hop on the same scheduler (the 2017 post's \"Future\")."
  use Tame.Latency.Methods.NIF, id: :nif_yielding, context_switch: "hop"

  @impl true
  def echo(nil, term), do: :tame_echo_nif.echo_yielding(term)
end

defmodule Tame.Latency.Methods.NIFDirtyCPU do
  @moduledoc "A NIF declared dirty CPU in the function table."
  use Tame.Latency.Methods.NIF, id: :nif_dirty_cpu, context_switch: "dirty CPU scheduler"

  @impl true
  def echo(nil, term), do: :tame_echo_nif.echo_dirty_cpu(term)
end

defmodule Tame.Latency.Methods.NIFDirtyIO do
  @moduledoc "A NIF declared dirty I/O in the function table."
  use Tame.Latency.Methods.NIF, id: :nif_dirty_io, context_switch: "dirty I/O scheduler"

  @impl true
  def echo(nil, term), do: :tame_echo_nif.echo_dirty_io(term)
end

defmodule Tame.Latency.Methods.NIFYieldingDirty do
  @moduledoc "A NIF declared normal that hops to a dirty CPU scheduler by `enif_schedule_nif`."
  use Tame.Latency.Methods.NIF,
    id: :nif_yielding_dirty,
    context_switch: "hop, dirty CPU scheduler"

  @impl true
  def echo(nil, term), do: :tame_echo_nif.echo_yielding_dirty(term)
end

defmodule Tame.Latency.Methods.NIFThreadNew do
  @moduledoc "A thread made for each call, which replies by `enif_send`: the placement `thread` of `tame.h`."
  use Tame.Latency.Methods.NIF, id: :nif_thread_new, context_switch: "new thread, message"

  @impl true
  def echo(nil, term), do: :tame_echo.echo_thread(term)
end

defmodule Tame.Latency.Methods.NIFThreadQueue do
  @moduledoc "The library's own pool of threads, one of which replies by `enif_send`: the placement `pool` of `tame.h`."
  use Tame.Latency.Methods.NIF, id: :nif_thread_queue, context_switch: "pool thread, message"

  @impl true
  def echo(nil, term), do: :tame_echo.echo_pool(term)
end
