defmodule Tame.JobProbe do
  @moduledoc """
  A job that counts what `tame.h` calls it for, in every placement.

  It keeps a CPU for a number of microseconds by the clock, and returns how many probes have ended so
  far, itself included. The counters lie in a file that the test reads from outside, so they outlive the
  library and the emulator. `natives/job_probe_nif.c` has the C side.
  """

  @on_load :load

  @placements ~w(auto inline yielding dirty_cpu dirty_io yielding_dirty thread pool)a

  @doc "Every placement; a function of that name runs the job there. `few` is a pool for three."
  def placements, do: @placements

  @doc "What wraps the NIF of another name by mistake."
  def mistaken(us, bytes) do
    :tame.value(pool_nif(us, bytes), fn _us -> :never end, {__MODULE__, :mistaken, [us, bytes]})
  end

  # gated: yielding, two at once, three that wait; gated_pool: the same in the pool.
  for name <- @placements ++ [:few, :gated, :gated_pool] do
    nif = :"#{name}_nif"
    def unquote(name)(us, bytes \\ "s"), do: unquote(:"#{name}_wrapped")(us, bytes)

    defp unquote(:"#{name}_wrapped")(us, bytes) do
      call = {__MODULE__, unquote(name), [us, bytes]}
      :tame.value(unquote(nif)(us, bytes), &unquote(nif)(&1, &2), call)
    end

    # Public as well: called from elsewhere it leaves no frame of this module on the stack.
    def unquote(nif)(_us, _bytes), do: :erlang.nif_error(:nif_not_loaded)
  end

  def load do
    case :os.getenv(~c"TAME_PROBE_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end

  @fields ~w(init step result cleanup broken)a
  @size 8 * length(@fields)

  @doc "Makes the file of counters, all 0."
  def new_counters(path), do: File.write!(path, :binary.copy(<<0>>, @size))

  @doc "The counters as they are now."
  def counters(path) do
    values = for <<value::native-64 <- File.read!(path)>>, do: value
    @fields |> Enum.zip(values) |> Map.new()
  end

  @doc """
  Builds the library of `natives/<name>_nif.c`, or of the folder `natives/<name>`, with the flags of the
  others; with sanitizers where those are (see `make test-sanitized`). Returns its path.
  """
  def build(folder, name \\ "job_probe") do
    root = :tame.source_dir()
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([:code.root_dir(), erts, "include"])
    library = Path.join(folder, name <> ".so")

    flags =
      if System.get_env("TAME_NATIVE_DIR"),
        do: ~w(-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer),
        else: ~w(-O2)

    args =
      ~w(-std=gnu11 -Wall -Wextra -Wmissing-prototypes -Werror -g -fPIC -shared -fvisibility=hidden) ++
        flags ++
        ["-I#{include}", "-I#{Path.join(root, "c_include")}", "-o", library] ++
        sources(Path.join(root, "test/support/natives"), name)

    {output, status} = System.cmd("cc", args, stderr_to_stdout: true)
    if status != 0, do: raise("#{name} does not build:\n" <> output)
    library
  end

  defp sources(natives, name) do
    Path.wildcard(Path.join(natives, "#{name}_nif.c")) ++
      Path.wildcard(Path.join([natives, name, "*.c"]))
  end
end
