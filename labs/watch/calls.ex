defmodule Tame.Watch.Calls do
  @moduledoc """
  Traced calls of one function, from the events of their processes to slices. Pure.
  """

  @type event :: {:call | :in | :out | :return, pid(), non_neg_integer(), integer()}

  @type share :: %{count: non_neg_integer(), longest_us: float(), total_us: float()}

  @typedoc "A call that has returned; the VM gives every dirty scheduler the number 0."
  @type call :: %{elapsed_us: float(), normal: share(), dirty: share()}

  @doc """
  The calls that are whole in `events`, in the order of their returns.

      iex> events = [{:call, self(), 1, 0}, {:out, self(), 1, 5000}, {:in, self(), 0, 6000}, {:out, self(), 0, 9000},
      ...>   {:in, self(), 1, 9500}, {:return, self(), 1, 10_000}]
      iex> Tame.Watch.Calls.read(events)
      [%{elapsed_us: 10.0, normal: %{count: 2, longest_us: 5.0, total_us: 5.5},
         dirty: %{count: 1, longest_us: 3.0, total_us: 3.0}}]
  """
  @spec read([event()]) :: [call()]
  def read(events) do
    {_, calls} = Enum.reduce(events, {%{}, []}, &event/2)
    Enum.reverse(calls)
  end

  # Of each process in a call: when the call began, when the slice did, and the slices that ended.
  defp event({:call, pid, _, at}, {open, calls}), do: {Map.put(open, pid, {at, at, []}), calls}

  defp event({what, pid, scheduler, at}, {open, calls}) do
    case {what, open[pid]} do
      {_, nil} ->
        {open, calls}

      {:in, {began, _, slices}} ->
        {Map.put(open, pid, {began, at, slices}), calls}

      {:out, {began, since, slices}} ->
        {Map.put(open, pid, {began, nil, slice(since, at, scheduler, slices)}), calls}

      {:return, {began, since, slices}} ->
        {Map.delete(open, pid), [call(began, at, slice(since, at, scheduler, slices)) | calls]}
    end
  end

  defp slice(nil, _at, _scheduler, slices), do: slices

  defp slice(since, at, scheduler, slices),
    do: [{if(scheduler == 0, do: :dirty, else: :normal), (at - since) / 1000} | slices]

  defp call(began, at, slices) do
    %{
      elapsed_us: (at - began) / 1000,
      normal: share(slices, :normal),
      dirty: share(slices, :dirty)
    }
  end

  defp share(slices, kind) do
    times = for {^kind, us} <- slices, do: us

    %{
      count: length(times),
      longest_us: Enum.max(times, fn -> 0.0 end),
      total_us: Enum.sum(times) / 1
    }
  end
end
