excluded =
  if Tame.TTY.Test.Pane.tmux?() do
    []
  else
    IO.puts("skipped: all tests in a terminal, because there is no tmux here")
    [:terminal]
  end

ExUnit.start(exclude: excluded, timeout: 900_000, assert_receive_timeout: 5000)
