defmodule Audited.Candidates do
  # Which functions of a library's module to call, and with what: found by trying, in a VM that is thrown away.

  alias Tame.Audit.Peer

  @growing ~w(binary utf8 json list map iolist integer term)a
  @few ~w(binary utf8 list map)a
  # What stands beside the argument that grows.
  @beside [[], true, 0, 1, :"utf-8", "a", %{}]
  @fewer [[], true, 1]

  @most_arity 3
  @bytes 1024
  @try_ms 1000
  @all_ms 8_000

  @doc "The functions of a library that take something, as `Tame.Audit.Functions` has them."
  def functions(library, beam) do
    for {{_, _, arity}, _} = found <- Tame.Audit.Functions.of(library, beam), arity > 0, do: found
  end

  @doc "An input that the function takes, as `Tame.Audit.Input` has it; or why there is none."
  def input({_, _, arity}) when arity > @most_arity,
    do: {:error, "has #{arity} arguments: expected an input file"}

  def input({_, _, arity} = function) do
    until = System.monotonic_time(:millisecond) + @all_ms
    attempt(inputs(arity), function, nil, until, "takes nothing that was tried")
  end

  defp attempt([], _function, peer, _until, why), do: stopped(peer, {:error, why})

  defp attempt([input | rest], function, peer, until, why) do
    with true <- System.monotonic_time(:millisecond) < until,
         {:ok, peer} <- open(peer, function) do
      spec = %{target: function, input: input, bytes: @bytes, limit_ms: @try_ms}

      case Peer.call(peer, :tame_audit, :call, [spec], 3 * @try_ms) do
        {:ok, {:ok, %{refused: :none}}} ->
          stopped(peer, {:ok, {about(input), input}})

        {:ok, {:ok, %{refused: value}}} ->
          attempt(rest, function, peer, until, "answers what was tried with #{value}")

        {:ok, {:error, :hangs}} ->
          stopped(peer, attempt(rest, function, nil, until, why))

        {:ok, {:error, _raised}} ->
          attempt(rest, function, peer, until, why)

        {:error, "ended the VM" <> _ = how} ->
          stopped(peer, {:error, "#{how} when called with #{about(input)}"})

        {:error, _} ->
          stopped(peer, attempt(rest, function, nil, until, why))
      end
    else
      false -> stopped(peer, {:error, why <> " within #{div(@all_ms, 1000)} s"})
      {:error, text} -> {:error, text}
    end
  end

  defp open(nil, function) do
    with {:ok, peer} <- Peer.start() do
      case Peer.call(peer, :tame_audit_load, :prepare, [function], 10_000) do
        {:ok, {:ok, _}} -> {:ok, peer}
        {:ok, {:error, why}} -> stopped(peer, {:error, "its module: #{inspect(why, limit: 5)}"})
        {:error, why} -> stopped(peer, {:error, "loading its module #{why}"})
      end
    end
  end

  defp open(peer, _function), do: {:ok, peer}

  defp stopped(nil, answer), do: answer

  defp stopped(peer, answer) do
    Peer.stop(peer)
    answer
  end

  defp inputs(1), do: for(one <- @growing, do: [one])

  defp inputs(2) do
    alone = for growing <- @growing, beside <- @beside, at <- [0, 1], do: at(growing, [beside], at)
    alone ++ for(growing <- @few, do: [growing, growing])
  end

  defp inputs(3) do
    for growing <- @few,
        one <- @fewer,
        two <- @fewer,
        at <- [0, 1, 2],
        do: at(growing, [one, two], at)
  end

  defp at(growing, beside, at),
    do: beside |> Enum.map(&{:literal, &1}) |> List.insert_at(at, growing)

  defp about(input) do
    Enum.map_join(input, ",", fn
      {:literal, term} -> "=" <> (:io_lib.format("~tp", [term]) |> IO.chardata_to_string())
      name -> Atom.to_string(name)
    end)
  end
end
