defmodule Tame.Test.ShareLibraries do
  @moduledoc false
  # Modules with a NIF library each (natives/share_nif.c), which are isolated into one group: compiled into a folder
  # for a test, and used in a VM of its own.

  alias Tame.Test.CLibrary

  @source Path.expand("natives/share_nif.c", __DIR__)
  @modules [:share_one, :share_two, :share_three]

  # Version 2 of each library has a function more.
  def build!(folder) do
    File.cp!(@source, Path.join(folder, "share_nif.c"))

    for module <- @modules, version <- [1, 2] do
      flags = ["-std=gnu11", "-DNAME=#{module}", "-DVERSION=#{version}"]
      {"", 0} = CLibrary.compile(folder, "share_nif.c", flags)
      File.rename!(Path.join(folder, "share_nif.so"), library(folder, module, version))
      File.write!(beam(folder, module, version), compiled(module, version))
    end

    for module <- @modules, do: File.cp!(beam(folder, module, 1), "#{folder}/#{module}.beam")
    folder
  end

  def library(folder, module, version), do: Path.join(folder, "#{module}.#{version}.so")
  def beam(folder, module, version), do: Path.join(folder, "#{module}.#{version}.beam")

  # Code of that version whose -on_load binds its library, which returns `refuse`.
  def loading_beam(folder, module, version, refuse \\ 0) do
    file = folder |> library(module, version) |> Path.rootname()
    log = Path.join(folder, "log")

    compiled(
      module,
      version,
      "-on_load(start/0). start() -> bind(\"#{file}\", {\"#{log}\", #{refuse}})."
    )
  end

  # Code whose -on_load asks the process of the name `gate`, if there is one, and returns what that answers.
  def waiting_beam(module) do
    compiled(module, 1, """
    -on_load(start/0).
    start() ->
        case whereis(gate) of
            undefined -> ok;
            Gate -> Gate ! {self(), loads}, receive {Gate, Answer} -> Answer end
        end.
    """)
  end

  # What the libraries have written, a line each.
  def log(folder), do: folder |> Path.join("log") |> File.read!() |> String.split("\n", trim: true)
  def new_log(folder), do: File.write!(Path.join(folder, "log"), "")

  # `loop` runs this version until it is told to go on with the newest.
  defp compiled(module, version, loading \\ "") do
    new = if version > 1, do: ", only_new/0", else: ""
    stub = if version > 1, do: "only_new() -> own.", else: ""

    text = """
    -module(#{module}).
    -export([bind/2, who/0, new_box/1, read_box/1, call_box/2, crash/0, nap/1, late_box/2,
        loop/0#{new}]).
    #{loading}
    bind(File, Info) -> erlang:load_nif(File, Info).
    who() -> {own, #{version}}.
    new_box(_) -> own.
    read_box(_) -> own.
    call_box(_, _) -> own.
    crash() -> own.
    nap(_) -> own.
    late_box(_, _) -> own.
    #{stub}
    loop() ->
        receive
            {From, who} -> From ! {self(), who()}, loop();
            upgrade -> ?MODULE:loop();
            stop -> ok
        end.
    """

    {:ok, tokens, _} =
      text |> String.replace("?MODULE", "#{module}") |> to_charlist() |> :erl_scan.string()

    forms =
      tokens
      |> forms()
      |> Enum.map(fn form ->
        {:ok, form} = :erl_parse.parse_form(form)
        form
      end)

    {:ok, ^module, beam} = :compile.forms(forms, [:debug_info])
    beam
  end

  defp forms(tokens) do
    Enum.chunk_while(
      tokens,
      [],
      fn
        {:dot, _} = dot, form -> {:cont, Enum.reverse([dot | form]), []}
        token, form -> {:cont, [token | form]}
      end,
      fn [] -> {:cont, []} end
    )
  end
end
