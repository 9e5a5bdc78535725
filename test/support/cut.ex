defmodule Tame.Test.Cut do
  @moduledoc false
  # Whether work is cut into slices, by {longest slice, how long all took} of each time that it is measured. On a busy
  # machine a slice may be long because its thread has no core, and a total because all waited: so the least of each,
  # and as often as it takes. Of what is not cut the longest slice is all of it, each time.

  @times 25

  def cut?(measure), do: cut?(measure, @times, {:infinity, :infinity})

  defp cut?(_measure, 0, _least), do: false

  defp cut?(measure, times, {longest, total}) do
    {now_longest, now_total} = measure.()
    {longest, total} = {min(longest, now_longest), min(total, now_total)}
    longest < total / 4 or cut?(measure, times - 1, {longest, total})
  end
end
