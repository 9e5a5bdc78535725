defmodule Tame.JobProbe do
  @moduledoc """
  A job that counts what `tame.h` calls it for, in every placement.

  It keeps a CPU for a number of microseconds by the clock, and returns how many probes have ended so
  far, itself included. The counters lie in a file that the test reads from outside, so they outlive the
  library and the emulator. `natives/job_probe_nif.c` has the C side.
  """

  use Tame.Job

  @on_load :load

  @placements ~w(auto inline yielding dirty_cpu dirty_io yielding_dirty thread pool)a

  @doc "Every placement; a function of that name runs the job there. `few` is a pool for three."
  def placements, do: @placements

  defjob(auto(us, bytes))
  defjob(inline(us, bytes))
  defjob(yielding(us, bytes))
  defjob(dirty_cpu(us, bytes))
  defjob(dirty_io(us, bytes))
  defjob(yielding_dirty(us, bytes))
  defjob(thread(us, bytes))
  defjob(pool(us, bytes))
  defjob(few(us, bytes))
  defjob(held(us, bytes))
  defjob(queued(us, bytes))
  # Yielding, two at once, three that wait; and the same in the pool.
  defjob(gated(us, bytes))
  defjob(gated_pool(us, bytes))

  for name <- @placements ++ [:few, :held, :queued, :gated, :gated_pool] do
    def unquote(name)(us), do: unquote(name)(us, "s")

    # Public as well: called from elsewhere it leaves no frame of this module on the stack.
    def unquote(:"#{name}_nif")(_us, _bytes), do: :erlang.nif_error(:nif_not_loaded)
  end

  @doc "Public as well, for what calls it in the place of the module."
  def unquote(:"$tame")(_, _, _), do: :erlang.nif_error(:nif_not_loaded)

  def load do
    case :os.getenv(~c"TAME_PROBE_LIBRARY") do
      false -> :ok
      path -> :erlang.load_nif(Path.rootname(path), 0)
    end
  end

  @fields ~w(init step result cleanup broken release)a
  @size 8 * length(@fields)

  @doc "Makes the file of counters, all 0."
  def new_counters(path), do: File.write!(path, :binary.copy(<<0>>, @size))

  @doc "Lets the steps of `held` end."
  def release(path) do
    {:ok, file} = :file.open(path, [:read, :write, :raw, :binary])
    :ok = :file.pwrite(file, 8 * (length(@fields) - 1), <<1::native-64>>)
    :ok = :file.close(file)
  end

  @doc "The counters as they are now."
  def counters(path) do
    values = for <<value::native-64 <- File.read!(path)>>, do: value
    @fields |> Enum.zip(values) |> Map.new()
  end

  @doc """
  Builds the library of `natives/<name>_nif.c`, the driver of `natives/<name>_drv.c`, or of the folder `natives/<name>`, with the flags of the
  others; with sanitizers where those are (see `make test-sanitized`). Returns its path.
  """
  def build(folder, name \\ "job_probe", more \\ []) do
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
        more ++
        ["-I#{include}", "-I#{Path.join(root, "c_include")}", "-o", library] ++
        sources(Path.join(root, "test/support/natives"), name)

    {output, status} = System.cmd("cc", args, stderr_to_stdout: true)
    if status != 0, do: raise("#{name} does not build:\n" <> output)
    library
  end

  defp sources(natives, name) do
    Path.wildcard(Path.join(natives, "#{name}_{nif,drv}.c")) ++
      Path.wildcard(Path.join([natives, name, "*.c"]))
  end
end
