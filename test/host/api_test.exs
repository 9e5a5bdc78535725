defmodule Tame.Host.ApiTest do
  # The list of functions that a host has: c_src/host/enif_api.def.
  use ExUnit.Case, async: true

  alias Tame.Test.{CLibrary, Host}

  # A newer header has more functions; the page is that of the oldest OTP that is supported.
  if System.otp_release() == "25" do
    @tag :reference
  else
    @tag skip: "the page is OTP 25's"
  end

  test "docs/reference/host_api.md is what enif_api.def says" do
    {table, 0} = System.cmd(Host.path(), ["--api"])
    page = Path.join(:tame.source_dir(), "docs/reference/host_api.md")
    assert File.read!(page) == table, "run: #{Host.path()} --api > docs/reference/host_api.md"
  end

  test "a function of a newer header that is not listed fails the build, by its name" do
    folder = CLibrary.tmp_dir!()
    include = Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
    newer = Path.join(folder, "include")
    File.cp_r!(include, newer)
    header = Path.join(newer, "erl_nif_api_funcs.h")
    mark = "/*\n** ADD NEW ENTRIES HERE"
    text = File.read!(header)
    assert text =~ mark
    added = "ERL_NIF_API_FUNC_DECL(int,enif_of_tomorrow,(ErlNifEnv*));\n"
    File.write!(header, String.replace(text, mark, added <> mark))
    host = Path.join(:tame.source_dir(), "c_src/host")
    source = Path.join(host, "life/api.c")

    build = fn folder ->
      System.cmd(
        "cc",
        ~w(-std=gnu11 -Wall -fsyntax-only -iquote #{host} -iquote #{Path.dirname(host)}) ++
          ~w(-isystem #{folder} #{source}),
        stderr_to_stdout: true
      )
    end

    assert {"", 0} = build.(include)
    assert {output, 1} = build.(newer)
    assert output =~ "LISTED_enif_of_tomorrow"
  end
end
