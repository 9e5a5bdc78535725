defmodule Tame.ProbeTest do
  # What a helper process prints of a library may be the library's own: each mistake is one clear error, and makes no atom.
  use ExUnit.Case, async: true

  alias Tame.Test.CLibrary

  @right ~s({"file":"a.so","module":"m","missing":[],"functions":[{"name":"f","arity":1,"flags":0}]})

  defp with_field(field, json),
    do: String.replace(@right, ~r/"#{field}":(\[.*?\]|"\w+(\.so)?")/, ~s("#{field}":#{json}))

  test "a description that is right" do
    assert {:ok, [%{"file" => "a.so", "module" => "m"}]} = :tame_probe.read(@right <> "\n", 1)

    # The table of OTP 27's crypto_callback.so.
    unnamed = with_field("functions", ~s([{"name":null,"arity":0,"flags":0}]))
    assert {:ok, [%{"module" => "m"}]} = :tame_probe.read(unnamed, 1)

    assert {:ok, [%{"error" => _}]} =
             :tame_probe.read(~s({"file":"a","error":{"reason":"r","text":"t"}}), 1)
  end

  test "fields of another type are refused by name" do
    wrong = [
      {"file", "7"},
      {"module", "null"},
      {"missing", ~s("none")},
      {"missing", "[1]"},
      {"functions", "{}"},
      {"functions", "[1]"},
      {"functions", ~s([{"name":7,"arity":1,"flags":0}])},
      {"functions", ~s([{"name":"f","arity":256,"flags":0}])},
      {"functions", ~s([{"name":"f","arity":1.5,"flags":0}])},
      {"functions", ~s([{"name":"f","arity":1,"flags":-1}])},
      {"functions", ~s([{"name":"f","arity":1}])},
      {"functions", ~s([{"name":"f","flags":0}])}
    ]

    for {field, json} <- wrong do
      line = with_field(field, json)
      assert line != @right
      assert {:error, text} = :tame_probe.read(line, 1)

      assert to_string(text) ==
               "tame_host --probe printed a wrong #{field}: does the library print?"
    end

    for error <- [~s("bad"), ~s({"reason":1,"text":"t"}), ~s({"reason":"r"})] do
      assert {:error, text} = :tame_probe.read(~s({"file":"a","error":#{error}}), 1)
      assert to_string(text) =~ "printed a wrong error"
    end
  end

  test "too many lines, too few and too much are refused" do
    for text <- ["", @right <> "\n" <> @right] do
      assert {:error, text} = :tame_probe.read(text, 1)
      assert to_string(text) =~ "for 1 libraries"
    end

    assert {:error, text} = :tame_probe.read(:binary.copy(" ", 8_388_609), 1)
    assert to_string(text) =~ "more than a description"
  end

  test "deep, long and hostile JSON is an error, not a crash" do
    nested = fn depth -> String.duplicate("[", depth) <> String.duplicate("]", depth) end
    objects = String.duplicate(~s({"a":), 101) <> "1" <> String.duplicate("}", 101)
    assert {:ok, _} = :tame_json.decode(nested.(100))

    wrong =
      ["1e999", "-1.5e999", "1" <> String.duplicate("0", 100_000), nested.(101), objects] ++
        [
          String.duplicate("[", 1_000_000),
          ~S("\u-001"),
          ~S("\u+041"),
          ~S("\ud800"),
          <<?", 255, ?">>
        ]

    for text <- wrong do
      assert {:error, _} = :tame_json.decode(text)
      assert {:error, sentence} = :tame_probe.read(text, 1)
      assert to_string(sentence) =~ "a line that is no JSON"
    end

    assert {:ok, 1.5e10} = :tame_json.decode("1.5e10")
    assert {:ok, 2.0e3} = :tame_json.decode("2E3")
    assert {:ok, "A"} = :tame_json.decode(~S("\u0041"))
  end

  test "a host that was built for another processor is told in words" do
    folder = CLibrary.tmp_dir!()
    natives = to_string(:tame_native.dir())
    for name <- File.ls!(natives), do: File.cp!(Path.join(natives, name), Path.join(folder, name))
    host = Path.join(folder, "tame_host")
    <<head::binary-size(18), _::16, tail::binary>> = File.read!(host)
    File.write!(host, <<head::binary, 0xF00D::16, tail::binary>>)

    asked = "{error, {no_host, Text}} = tame:isolate(crypto), io:put_chars(Text), halt()."
    ebin = Application.app_dir(:tame, "ebin")

    arguments = [
      "-noinput",
      "-pa",
      ebin,
      "-eval",
      "{ok, _} = application:ensure_all_started(tame), " <> asked
    ]

    {text, 0} = System.cmd("erl", arguments, env: [{"TAME_NATIVE_DIR", folder}])
    assert text =~ "#{host} does not run here: it was built for another processor"
    assert text =~ "`mix deps.compile tame`"
  end

  @tag needs: :jiffy
  test "a function that the module does not name is refused, and makes no atom" do
    name = "made_up_#{System.unique_integer([:positive])}"

    library =
      CLibrary.nif!(CLibrary.tmp_dir!(), "made_up", """
      #include <erl_nif.h>

      static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
      {
          (void)argc;
          (void)argv;
          return enif_make_int(env, 1);
      }

      static ErlNifFunc functions[] = {{"#{name}", 0, f, 0}};

      ERL_NIF_INIT(jiffy, functions, NULL, NULL, NULL, NULL)
      """)

    assert {:error, {:bad_library, text}} = :tame.isolate(:jiffy, %{library: library})
    assert to_string(text) =~ "has a function #{name}/0, and jiffy has none of that name"
    assert_raise ArgumentError, fn -> String.to_existing_atom(name) end
  end
end
