defmodule Tame.TTY.Test.Pane do
  @moduledoc """
  A terminal: a pane of a tmux server of its own, with `sh` in it, which has no line editor, so that nobody but what is
  tested sets the terminal.

  The server ends when this VM closes its standard input, which it does when it ends, however.
  """

  defstruct [:socket, :port, :tty]

  @deadline_ms 60_000
  @look_ms 20

  # At the end of its input it ends the server, and it does so at most 5 minutes later.
  @keeper """
  tmux -L "$0" -f /dev/null new-session -d -x 80 -y 24 sh && echo started
  (trap 'kill $!; exit' TERM; sleep 300 & wait; tmux -L "$0" kill-server) >/dev/null 2>&1 & late=$!
  read -r line
  kill $late
  tmux -L "$0" kill-server
  """

  @doc "Whether tmux is here; a test without it says so."
  def tmux?, do: System.find_executable("tmux") != nil

  def start do
    socket = "tame_tty_#{System.pid()}_#{System.unique_integer([:positive])}"
    env = [{~c"LC_ALL", ~c"C.UTF-8"}, {~c"TMUX", false}]

    port =
      Port.open({:spawn_executable, "/bin/sh"}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: ["-c", @keeper, socket],
        env: env
      ])

    receive do
      {^port, {:data, "started" <> _}} -> :ok
      {^port, {:data, other}} -> raise "tmux does not start: #{other}"
    after
      @deadline_ms -> raise "tmux does not start"
    end

    pane = %__MODULE__{socket: socket, port: port}
    %{pane | tty: String.trim(tmux(pane, ["list-panes", "-F", "\#{pane_tty}"]))}
  end

  @doc "Ends the server; what runs in the pane gets SIGHUP."
  def stop(%{port: port} = pane) do
    tmux(pane, ["kill-server"])
    if Port.info(port), do: Port.close(port)
    :ok
  end

  def tmux(pane, args) do
    {out, _} = System.cmd("tmux", ["-L", pane.socket | args], stderr_to_stdout: true)
    out
  end

  @doc "Keys by tmux's names."
  def keys(pane, keys), do: tmux(pane, ["send-keys" | keys])

  @doc "Bytes as they are."
  def bytes(pane, bytes) do
    hex = for <<byte <- bytes>>, do: Integer.to_string(byte, 16)
    tmux(pane, ["send-keys", "-H" | hex])
  end

  @doc "A command line for its shell."
  def run(pane, line) do
    tmux(pane, ["send-keys", "-l", line])
    tmux(pane, ["send-keys", "Enter"])
  end

  @doc "What runs in it has waited to be told so, or will."
  def go_on(pane), do: tmux(pane, ["wait-for", "-S", "go"])

  @doc "What is to be seen, without the empty lines."
  def screen(pane) do
    pane |> tmux(["capture-pane", "-p", "-J"]) |> String.replace(~r/\n+/, "\n")
  end

  @doc "Waits until the screen has it; gives the screen."
  def await(pane, expected, deadline \\ nil) do
    deadline = deadline || now() + @deadline_ms
    screen = screen(pane)

    cond do
      screen =~ expected -> screen
      now() > deadline -> raise "no #{inspect(expected)} on the screen:\n#{screen}"
      true -> Process.sleep(@look_ms) && await(pane, expected, deadline)
    end
  end

  @doc "Waits until the function gives true."
  def until(what, fun, deadline \\ nil) do
    deadline = deadline || now() + @deadline_ms

    cond do
      fun.() -> :ok
      now() > deadline -> raise "it did not happen that #{what}"
      true -> Process.sleep(@look_ms) && until(what, fun, deadline)
    end
  end

  @doc "Processes by pgrep, which does not end with a sanitizer in it (`make sanitized`)."
  def pgrep(args), do: System.cmd("pgrep", args, env: [{"LD_PRELOAD", nil}])

  @doc "The settings of the terminal as they are now, without its size."
  def stty(pane) do
    {out, 0} = System.cmd("stty", ["-a", "-F", pane.tty])
    String.replace(out, ~r/rows \d+; columns \d+; /, "")
  end

  @doc "Whether the alternate screen is shown."
  def alternate?(pane),
    do: String.trim(tmux(pane, ["display-message", "-p", "\#{alternate_on}"])) == "1"

  @doc "Whether the cursor is shown, and whether the mouse is reported."
  def modes(pane) do
    text = tmux(pane, ["display-message", "-p", "\#{cursor_flag} \#{mouse_any_flag}"])
    [cursor, mouse] = String.split(text)
    %{cursor: cursor == "1", mouse: mouse == "1"}
  end

  @doc "The VM in the pane: its command line, with the code of the tests."
  def erl(flags, code) do
    paths =
      for module <- [:tame_tty, :tame, :tame_tty_subject],
          do: "-pa #{module |> :code.which() |> Path.dirname()}"

    "erl #{flags} #{Enum.join(paths, " ")} -eval '#{code}'"
  end

  defp now, do: System.monotonic_time(:millisecond)
end
