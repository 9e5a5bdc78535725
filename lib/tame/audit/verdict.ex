defmodule Tame.Audit.Verdict do
  def text(x), do: inspect(x)
end
