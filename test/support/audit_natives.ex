defmodule Tame.AuditNatives do
  @moduledoc """
  NIF libraries that do not behave, built in a folder of their own, each with its module.
  """

  alias Tame.Test.CLibrary

  @source Path.expand("natives/audit_nif.c", __DIR__)

  @doc "Builds `module` in `folder`, with what `defines` say, and puts it on the code path."
  def build!(folder, module, defines \\ []) do
    File.cp!(@source, Path.join(folder, "#{module}.c"))
    File.write!(Path.join(folder, "#{module}.erl"), erlang(module))
    flags = ["-D_GNU_SOURCE", "-DMODULE=#{module}" | Enum.map(defines, &"-D#{&1}")]
    {_, 0} = CLibrary.compile(folder, "#{module}.c", flags)
    {_, 0} = CLibrary.erlc(folder, "#{module}.erl")
    true = :code.add_pathz(String.to_charlist(folder))
    Path.join(folder, "#{module}.so")
  end

  @doc "Builds an application `lazy` in `folder`, whose start loads the NIFs of `lazy_nif`, and puts it on the code path."
  def build_lazy!(folder, needs) do
    ebin = Path.join(folder, "lazy/ebin")
    File.mkdir_p!(ebin)
    build!(ebin, :lazy_nif)
    needs = inspect([:kernel, :stdlib | needs]) |> String.replace(":", "")

    File.write!(Path.join(ebin, "lazy.app"), """
    {application, lazy, [{vsn, "1"}, {modules, [lazy_nif]}, {applications, #{needs}}, {mod, {lazy_nif, []}}]}.
    """)

    File.write!(Path.join(ebin, "lazy_nif.erl"), """
    -module(lazy_nif).
    -behaviour(application).
    -export([start/2, stop/1]).
    #{functions()}
    start(_, _) ->
        ok = load(),
        {ok, spawn_link(fun() -> receive stop -> ok end end)}.
    stop(_) -> ok.
    """)

    {_, 0} = CLibrary.erlc(ebin, "lazy_nif.erl")
  end

  @functions ~w(forever forking crash stubborn leaky leaky_malloc leaky_little leaky_shared leaky_descriptor thrifty) ++
               ~w(chatty picky tired stuck slow_end at_times) ++
               ~w(crash_late hang_late tired_late crash_at_times crash_killed hang_killed twofold)

  defp erlang(module), do: "-module(#{module}).\n-on_load(load/0).\n#{functions()}"

  defp functions do
    """
    -export([#{Enum.map_join(@functions, ", ", &"#{&1}/1")}]).
    load() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    #{Enum.map_join(@functions, "\n", &"#{&1}(_) -> erlang:nif_error(not_loaded).")}
    """
  end
end
