defmodule Tame.Test.HostileHost do
  @moduledoc false
  # A host gone bad, for the option `host` of tame:isolate/2: natives/hostile_host.c and the scripts that
  # it plays. It passes for a host of tame_echo.

  alias Tame.Test.ControlFrames

  @source Path.expand("natives/hostile_host.c", __DIR__)
  @slots 16
  @slot_bytes 4096
  @area_bytes 1_048_576

  # What the VM is to be told of the ring that the scripts make.
  def options do
    %{slots: @slots, slot_bytes: @slot_bytes, area_bytes: @area_bytes}
  end

  # Compiles the program into the folder, and returns where it is.
  def build!(folder) do
    program = Path.join(folder, "hostile_host")
    ring = Path.join([:tame.source_dir(), "c_src", "ring"])
    flags = ~w(-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -pthread)
    include = ["-I#{ring}", "-I#{:tame.include_dir()}"]
    sources = for part <- ~w(ring_host ../os/), do: Path.wildcard(Path.join(ring, part <> "*.c"))

    {"", 0} =
      System.cmd("cc", flags ++ include ++ ["-o", program, @source] ++ List.flatten(sources),
        stderr_to_stdout: true
      )

    program
  end

  # Puts a host of this name into the folder, which plays these steps: the path to give as `host`.
  def install!(program, folder, name, steps) do
    path = Path.join(folder, "hostile_#{name}")
    File.ln_s!(program, path)
    File.write!(path <> ".script", steps)
    path
  end

  # How often it has been started.
  def starts(path) do
    case File.stat(path <> ".starts") do
      {:ok, %{size: size}} -> size
      {:error, :enoent} -> 0
    end
  end

  # The number of the protocol, as the real host says it in its first frame.
  def protocol do
    port =
      Port.open({:spawn_executable, :tame_native.path(~c"tame_host")}, [
        :nouse_stdio,
        :binary,
        packet: 4
      ])

    receive do
      {^port, {:data, frame}} ->
        Port.close(port)
        :erlang.binary_to_term(frame) |> elem(1)
    after
      10_000 -> raise "tame_host says no hello"
    end
  end

  # ---- steps, see hostile_host.c ---------------------------------------------------------------------

  def hello(protocol), do: [?H, <<protocol::32>>]
  def bytes(bytes), do: [?D, block(bytes)]
  def frame(term), do: term |> ControlFrames.framed() |> bytes()
  def etf(bytes), do: bytes |> ControlFrames.framed_bytes() |> bytes()
  def wait_for(bytes), do: [?W, block(bytes)]
  def ring, do: [?R, <<@slots::32, @slot_bytes::32, @area_bytes::32>>]
  def serve(workers \\ 2), do: [?S, <<workers::32>>]
  def read_and_answer, do: [?K, <<1::32>>]
  def read_only, do: [?K, <<0::32>>]
  def pause(ms), do: [?P, <<ms::32>>]
  def again_and_again(steps), do: repeat(0, steps)
  def repeat(times, steps), do: [?L, <<times::32>>, block(steps)]
  # Each start of the program plays the next one.
  def one_of(many), do: [?C, <<length(many)::32>>, Enum.map(many, &block/1)]
  def close(fd), do: [?A, <<fd::32>>]
  def leave_children(count), do: [?F, <<count::32>>]
  def exit_with(status), do: [?X, <<status::32>>]
  def signal(number), do: [?Q, <<number::32>>]

  defp block(bytes), do: [<<IO.iodata_length(bytes)::32>>, bytes]

  # ---- well-behaved runs of steps ----------------------------------------------------------------------

  # Up to where the VM wants the library to be loaded.
  def until_load(protocol), do: [hello(protocol), wait_for("ring"), ring(), wait_for("load")]

  def loaded(protocol) do
    frame({:loaded, ControlFrames.functions(), ControlFrames.loaded_info(protocol)})
  end

  # Up, and serving calls; whatever else the VM says from here on, nobody reads.
  def deaf(protocol), do: [until_load(protocol), serve(), loaded(protocol)]

  # Up, and in all a good host.
  def up(protocol), do: [until_load(protocol), serve(), read_and_answer(), loaded(protocol)]
end
