defmodule Tame.HTTP.Test.Load do
  @moduledoc false
  # h2load against a port for as long as a test wants it.

  def start(port, arguments \\ []) do
    program = System.find_executable("h2load")
    url = "http://127.0.0.1:#{port}/"
    args = ["-c", "20", "-D", "600" | arguments] ++ [url]
    # Ends with the port: h2load does not look at its input, a shell does.
    script = "exec 2>/dev/null; \"$@\" >/dev/null & child=$!; read line; kill $child; wait $child"
    args = ["-c", script, "sh", program | args]
    Port.open({:spawn_executable, "/bin/sh"}, [:binary, args: args])
  end

  def stop(load) do
    Port.close(load)
  rescue
    # Its test has ended, and the port with it.
    ArgumentError -> true
  end
end
