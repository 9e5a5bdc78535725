defmodule Tame.Doctor do
  @moduledoc """
  Whether tame works here: what is built and for which OTP, what there is to build with, what is isolated, with which
  flags the VM runs. A finding that is not well has the line that mends it. Pure; `Tame.Doctor.Facts` looks.
  """

  alias Tame.SystemInfo
  alias Tame.Doctor.Facts

  @typedoc "`:missing` keeps tame from working, a `:note` does not. `mend` is a command, or what to change."
  @type finding :: %{
          id: atom(),
          state: :ok | :note | :missing,
          text: String.t(),
          mend: nil | String.t()
        }

  @typedoc "An isolated module; `since` is when a host came up, nil while it is not."
  @type isolated :: %{
          module: module(),
          state: atom(),
          restarts: non_neg_integer(),
          hosts: [%{state: atom(), os_pid: non_neg_integer(), since: nil | DateTime.t()}]
        }

  @type result :: %{system: SystemInfo.t(), findings: [finding()], isolated: [isolated()]}

  @doc "What the facts come to."
  @spec examine(Facts.t()) :: result()
  def examine(facts) do
    isolated = for {module, info} <- Enum.sort(facts.info), do: isolated(module, info, facts.now)

    %{
      system: facts.system,
      findings:
        [natives(facts), header(facts), tools(facts), labs(facts), assets(facts.assets)] ++
          [application(facts.start), isolation(facts, isolated), flags(facts.system)] ++
          warnings(facts.system),
      isolated: isolated
    }
  end

  @doc "Whether nothing is missing."
  @spec ok?(result()) :: boolean()
  def ok?(result), do: Enum.all?(result.findings, &(&1.state != :missing))

  # ---- what is built, and what with -----------------------------------------------------------------

  defp natives(facts) do
    case for {name, false} <- facts.natives, do: name do
      [] ->
        ok(
          :natives,
          "built for Erlang/OTP #{facts.otp} (ERTS #{facts.erts}), in #{facts.native_dir}"
        )

      absent ->
        others =
          if facts.other_erts == [],
            do: "",
            else: "; built for ERTS #{Enum.join(facts.other_erts, ", ")} only"

        missing(
          :natives,
          "#{Enum.join(absent, ", ")} not built for Erlang/OTP #{facts.otp} (ERTS #{facts.erts})#{others}",
          to_string(:tame_native.how_to_build())
        )
    end
  end

  defp header(%{header?: true} = facts), do: ok(:headers, "#{facts.header} is there")

  defp header(facts) do
    note(
      :headers,
      "there is no #{facts.header}, so NIFs, tame's own too, cannot be compiled here",
      "apt-get install erlang-dev (Fedora: dnf install erlang-erts; Alpine: apk add erlang-dev)"
    )
  end

  defp tools(facts) do
    case for {name, false} <- facts.tools, do: name do
      [] ->
        ok(:compiler, "#{Enum.map_join(facts.tools, ", ", &elem(&1, 0))} on PATH")

      absent ->
        note(
          :compiler,
          "no #{Enum.join(absent, ", no ")} on PATH, so NIFs cannot be compiled here",
          "apt-get install gcc libc6-dev make (Fedora: dnf install gcc glibc-devel make)"
        )
    end
  end

  defp labs(%{labs?: true} = facts), do: ok(:labs, "their natives are in #{facts.labs_dir}")

  defp labs(facts) do
    missing(
      :labs,
      "the labs' natives are not built for ERTS #{facts.erts}",
      "mix deps.compile tame_labs --force (in tame itself: make build)"
    )
  end

  defp assets({:ok, _}), do: ok(:report, "the report's style and script are built")

  # The sentence ends with what to run.
  defp assets({:error, why}) do
    [what | run] = String.split(why, "; run: ", parts: 2)
    note(:report, "mix tame.report makes no page: #{what}", List.first(run))
  end

  # ---- what runs ------------------------------------------------------------------------------------

  defp application(:ok), do: ok(:application, "tame starts")

  defp application({:error, {{:not_isolated, sentence}, _}}) do
    missing(
      :application,
      "tame does not start: #{sentence}",
      "config :tame, isolate: [...] without it, or what it says"
    )
  end

  defp application({:error, why}) do
    missing(
      :application,
      "tame does not start: #{inspect(why, limit: 10)}",
      "see the log of the application's start"
    )
  end

  defp isolation(%{configured: []}, []) do
    note(
      :isolation,
      "no module is isolated",
      "config :tame, isolate: [:the_module], or :tame.isolate(:the_module)"
    )
  end

  defp isolation(facts, isolated) do
    there = Enum.map(isolated, & &1.module)

    wanted =
      for entry <- List.wrap(facts.configured),
          do: if(is_tuple(entry), do: elem(entry, 0), else: entry)

    case {wanted -- there,
          for(
            %{state: state, module: module} <- isolated,
            state not in [:serving, :empty],
            do: module
          )} do
      {[], []} ->
        ok(:isolation, "isolated: #{Enum.map_join(there, ", ", &inspect/1)}")

      {[], away} ->
        missing(
          :isolation,
          "the hosts do not answer calls: #{Enum.map_join(away, ", ", &inspect/1)}",
          Enum.map_join(away, ", ", &":tame.restart(#{inspect(&1)})")
        )

      {absent, _} ->
        missing(
          :isolation,
          "configured and not isolated: #{Enum.map_join(absent, ", ", &inspect/1)}",
          Enum.map_join(absent, ", ", &":tame.isolate(#{inspect(&1)})") <> " says why"
        )
    end
  end

  defp isolated(module, info, now) do
    hosts =
      for host <- info.hosts do
        up? = host.state == :up

        since =
          if up?, do: now |> DateTime.add(-host.up_ms, :millisecond) |> DateTime.truncate(:second)

        %{state: host.state, os_pid: host.os_pid, since: since}
      end

    %{module: module, state: info.state, restarts: info.restarts, hosts: hosts}
  end

  # ---- with which flags -----------------------------------------------------------------------------

  defp flags(system) do
    ok(
      :flags,
      "#{system[:schedulers]} schedulers, #{system[:dirty_cpu_schedulers]} dirty CPU, " <>
        "#{system[:dirty_io_schedulers]} dirty I/O; busy wait: #{system[:busy_wait] || "unknown"}"
    )
  end

  # Each says itself what to do. That others are at work here concerns figures, and none are measured.
  defp warnings(system) do
    for warning <- SystemInfo.warnings(system),
        warning.id != :machine_busy,
        do: note(warning.id, warning.text, nil)
  end

  defp ok(id, text), do: %{id: id, state: :ok, text: text, mend: nil}
  defp note(id, text, mend), do: %{id: id, state: :note, text: text, mend: mend}
  defp missing(id, text, mend), do: %{id: id, state: :missing, text: text, mend: mend}
end
