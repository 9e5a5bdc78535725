defmodule Tame.LoadServers do
  @moduledoc "Servers for the load lab as a project would write them: each does one thing that the lab has to see."

  defmodule Slow do
    @moduledoc "Answers everything after 50 ms."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(port, :h1) do
      :tame_load_bare.start(port, :h1, fn path ->
        Process.sleep(50)
        :tame_load_work.answer(path)
      end)
    end
  end

  defmodule Crashing do
    @moduledoc "Its VM ends by signal 11 when it is asked for a job."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(port, :h1) do
      :tame_load_bare.start(port, :h1, fn
        "/job" -> :os.cmd(~c"kill -SEGV #{:os.getpid()}") && {500, ""}
        path -> :tame_load_work.answer(path)
      end)
    end
  end

  defmodule Mute do
    @moduledoc "Accepts connections and never answers."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(port, :h1), do: :tame_load_bare.start(port, :h1, fn _ -> Process.sleep(:infinity) end)
  end

  defmodule Failing do
    @moduledoc "Answers hello with 500."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(port, :h1), do: :tame_load_bare.start(port, :h1, fn _ -> {500, "no"} end)
  end

  defmodule Once do
    @moduledoc "Answers the first hello, by which the lab sees whether a server answers at all, and 500 from then on."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(port, :h1) do
      asked = :counters.new(1, [])

      :tame_load_bare.start(port, :h1, fn path ->
        :counters.add(asked, 1, 1)
        if :counters.get(asked, 1) == 1, do: :tame_load_work.answer(path), else: {500, "no"}
      end)
    end
  end

  defmodule Unstartable do
    @moduledoc "Says why it does not start."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(_port, :h1), do: {:error, :no_licence}
  end

  defmodule Elsewhere do
    @moduledoc "Says that a program is the server, which sleeps until its input ends."
    @behaviour Tame.Load.Server

    @impl true
    def protocols, do: [:h1]

    @impl true
    def start(port, :h1) do
      program = Port.open({:spawn_executable, System.find_executable("cat")}, [])
      {:os_pid, os_pid} = Port.info(program, :os_pid)
      with {:ok, listening} <- :tame_load_bare.start(port, :h1), do: {:ok, listening, "#{os_pid}"}
    end
  end

  @doc "What the tests that need cowboy are skipped for, or false: Debian's is downloaded where it is not here yet."
  @spec no_cowboy() :: false | String.t()
  def no_cowboy do
    case Tame.Load.Cowboy.find() do
      {:ok, _} -> false
      {:error, _} -> fetch()
    end
  end

  defp fetch do
    case System.cmd(Path.expand("../tools/cowboy"), [], stderr_to_stdout: true) do
      {folder, 0} ->
        System.put_env("TAME_COWBOY", String.trim(folder))
        with {:error, why} <- Tame.Load.Cowboy.find(), do: why, else: (_ -> false)

      {why, _} ->
        String.trim(why)
    end
  end
end
