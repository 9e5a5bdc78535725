defmodule Tame.Soak.Libraries do
  @moduledoc "The libraries of the soak, their calls, and what each call must come to."

  alias Tame.IsolationCalls

  @calls 300

  # Its host is the hostile one, which passes for it.
  @hostile :tame_echo

  def hostile, do: @hostile

  @doc "Those that are installed: module, how it is bound, whether it has resources, and {call, outcome}s."
  def all(seed) do
    for {{library, [module | _]}, number} <- Enum.with_index(installed()) do
      IsolationCalls.load(library)
      calls = IsolationCalls.calls(library, @calls, seed)

      %{
        module: module,
        options: options(module, number),
        resources: library in [:crypto, :fxml_stream, :mqtree, :bitcask],
        library: library,
        calls: for(call <- calls, do: {call, IsolationCalls.outcome(call)})
      }
    end
  end

  def missing do
    for {_, [module | _]} <- IsolationCalls.libraries(), not installed?(module), do: module
  end

  defp installed do
    for {_, [module | _]} = library <- IsolationCalls.libraries(), installed?(module), do: library
  end

  defp installed?(module), do: :code.which(module) != :non_existing

  # Crashes and kills come more often here than an operator would have it.
  defp options(module, number) do
    base = %{
      bind: Enum.at([:recompile, :overlay], rem(number, 2)),
      intensity: :infinity,
      backoff_ms: {0, 100},
      deadline_ms: 10_000,
      grace_ms: 500,
      start_ms: 5000
    }

    # More than one host where the library is known to have none, or all kinds, of resources.
    if module in [:jiffy, :crypto], do: Map.put(base, :hosts, 2), else: base
  end

  @doc "The shared libraries that this VM has mapped."
  def mapped_files do
    for line <- File.stream!("/proc/self/maps"),
        [path] <- [Regex.run(~r{/\S+\.so$}, String.trim(line))],
        uniq: true,
        do: path
  end
end
