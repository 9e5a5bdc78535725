defmodule Tame.Test.MixTask do
  @moduledoc false
  # A Mix task as its tests run it: in this VM, with what it prints and how it ends.

  import ExUnit.CaptureIO

  # {standard output, standard error, exit status}
  def run(task, argv) do
    parent = self()

    err =
      capture_io(:stderr, fn ->
        out = capture_io(fn -> send(parent, {:status, status(task, argv)}) end)
        send(parent, {:out, out})
      end)

    {receive(do: ({:out, out} -> out)), err, receive(do: ({:status, status} -> status))}
  end

  defp status(task, argv) do
    task.run(argv)
    0
  catch
    :exit, {:shutdown, status} -> status
  end
end
