defmodule Tame.JobProbe do
  @moduledoc """
  A job that counts what `tame.h` calls it for, in every placement.

  It keeps a CPU for so many microseconds by the clock, and returns how many probes have ended so
  far, itself included. The counters lie in a file that the test reads from outside, so they outlive the
  library and the emulator. `natives/job_probe_nif.c` has the C side.
  """

  @on_load :load

  @placements ~w(auto inline yielding dirty_cpu dirty_io yielding_dirty thread pool)a

  @doc "Every placement; a function of that name runs the job there. `few` is a pool for three."
  def placements, do: @placements

  @doc "Yielding, two at once, three that wait."
  def gated(us, bytes \\ "s") do
    :tame.value(gated_nif(us, bytes), &gated_nif/2, {__MODULE__, :gated, [us, bytes]})
  end

  def gated_nif(_us, _bytes), do: :erlang.nif_error(:nif_not_loaded)

  for name <- @placements ++ [:few] do
    nif = :"#{name}_nif"
    def unquote(name)(us, bytes \\ "s"), do: unquote(:"#{name}_wrapped")(us, bytes)

    defp unquote(:"#{name}_wrapped")(us, bytes) do
      :tame.value(unquote(nif)(us, bytes), {__MODULE__, unquote(name), [us, bytes]})
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
  Builds the library with the flags of the others; with sanitizers where those are (see
  `make test-sanitized`). Returns its path.
  """
  def build(folder) do
    root = :tame.source_dir()
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([:code.root_dir(), erts, "include"])
    library = Path.join(folder, "job_probe.so")

    flags =
      if System.get_env("TAME_NATIVE_DIR"),
        do: ~w(-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer),
        else: ~w(-O2)

    args =
      ~w(-std=gnu11 -Wall -Wextra -Werror -g -fPIC -shared -fvisibility=hidden) ++
        flags ++
        ["-I#{include}", "-I#{Path.join(root, "c_include")}", "-o", library] ++
        [Path.join(root, "test/support/natives/job_probe_nif.c")]

    {output, status} = System.cmd("cc", args, stderr_to_stdout: true)
    if status != 0, do: raise("the job probe does not build:\n" <> output)
    library
  end
end
