defmodule Tame.Test.Cut do
  @moduledoc false
  # Whether work is cut into slices, by {longest slice, how long all took} of each time that it is measured. On a busy
  # machine a slice may be long because its thread has no core, and a total because all waited: so the least of each.

  def cut?(measure) do
    {longest, totals} = 1..5 |> Enum.map(fn _ -> measure.() end) |> Enum.unzip()
    Enum.min(longest) < Enum.min(totals) / 4
  end
end
