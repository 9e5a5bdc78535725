defmodule Tame.Audit.Static do
  @moduledoc """
  Which NIF libraries there are behind a target, and what each can do.
  """

  alias Tame.Audit.{Bound, Library, Target}

  @typedoc """
  What was found. `:notes` say what is there and is no NIF library, `:failures` what should be one.
  """
  @type t :: %{libraries: [Library.t()], notes: [String.t()], failures: [String.t()]}

  # Modules of OTP whose natives are part of the emulator.
  @built_in ~w(erl_tracer prim_buffer prim_file prim_net prim_socket zlib)a

  @doc "Looks at the targets' libraries. Nothing of them is loaded into this VM."
  @spec look([Target.t()]) :: {:ok, t()} | {:error, String.t()}
  def look(targets) do
    with {:ok, places} <- places(targets),
         files = places |> Enum.flat_map(& &1.files) |> Enum.uniq(),
         {:ok, seen} <- probe(files),
         {:ok, bound} <- bound(seen, places) do
      found =
        Enum.reduce(places, %{libraries: [], notes: [], failures: []}, &gather(&1, &2, seen, bound))

      {:ok,
       %{
         found
         | libraries:
             found.libraries |> Enum.uniq_by(&{&1.module, &1.path}) |> Enum.sort_by(& &1.module)
       }}
    end
  end

  # ---- where to look --------------------------------------------------------------------------------

  # files: to be looked at; modules: to be asked besides; own?: asked for by name, so that what is wrong with it is an error.
  defp places(targets) do
    Enum.reduce_while(targets, {:ok, []}, fn target, {:ok, places} ->
      case place(target) do
        {:ok, place} -> {:cont, {:ok, places ++ [Map.put(place, :target, target)]}}
        error -> {:halt, error}
      end
    end)
  end

  defp place({:function, {module, _, _}}), do: place({:module, module})

  defp place({:file, path}) do
    cond do
      File.dir?(path) -> {:error, "#{path} is a folder, not a library"}
      File.exists?(path) -> {:ok, %{files: [Path.expand(path)], modules: [], paths: [], own?: true}}
      true -> {:error, "there is no file #{path}"}
    end
  end

  defp place({:folder, path}) do
    case File.ls(path) do
      {:ok, _} ->
        paths = wildcard(path, "ebin") ++ wildcard(path, "lib/*/ebin")
        {:ok, %{files: wildcard(path, "**/*.so"), modules: [], paths: paths, own?: false}}

      {:error, reason} ->
        {:error, "cannot read the folder #{path}: #{:file.format_error(reason)}"}
    end
  end

  defp place({:application, name}) do
    folder = to_string(:code.lib_dir(name))
    built_in = if name == :erts, do: @built_in, else: []
    {:ok, %{files: application_files(folder), modules: built_in, paths: [], own?: false}}
  end

  defp place({:module, module}) do
    case :code.which(module) do
      :non_existing ->
        {:error, "there is no module #{inspect(module)}"}

      beam when is_list(beam) and beam != [] ->
        files = beam |> to_string() |> Path.dirname() |> beside()
        {:ok, %{files: files, modules: [module], paths: [], own?: false}}

      _preloaded ->
        {:ok, %{files: [], modules: [module], paths: [], own?: false}}
    end
  end

  defp place(:all) do
    files = Enum.flat_map(:code.get_path(), &beside(to_string(&1)))
    {:ok, %{files: files, modules: @built_in, paths: [], own?: false}}
  end

  # Where a module's library may lie: in its application's priv, or beside its beam file.
  defp beside(ebin) do
    priv =
      if Path.basename(ebin) == "ebin", do: wildcard(Path.dirname(ebin), "priv/**/*.so"), else: []

    priv ++ if(ebin == ".", do: [], else: wildcard(ebin, "*.so"))
  end

  defp application_files(folder), do: folder |> Path.join("ebin") |> beside()

  # A folder's own name may hold what a wildcard gives a meaning to.
  defp wildcard(folder, pattern) do
    folder = Path.expand(folder)

    for path <- :filelib.wildcard(~c"#{pattern}", String.to_charlist(folder)),
        do: Path.join(folder, to_string(path))
  end

  # ---- what is there --------------------------------------------------------------------------------

  defp probe(files) do
    case :tame_probe.files(Enum.map(files, &String.to_charlist/1)) do
      {:ok, entries} -> {:ok, Map.new(Enum.zip(files, entries), &library/1)}
      {:error, why} -> {:error, to_string(why)}
    end
  end

  defp library({file, entry}) do
    # Reading a FIFO or a device may wait for ever.
    bytes =
      with true <- File.regular?(file), {:ok, bytes} <- File.read(file) do
        bytes
      else
        _ -> ""
      end

    {file, Library.from_probe(entry, bytes)}
  end

  # Modules are asked as well: a library may belong to a module of another name.
  defp bound(seen, places) do
    paths = Enum.flat_map(places, & &1.paths)
    named = for {_, {:ok, library}} <- seen, do: String.to_atom(library.module)
    Bound.ask(Enum.uniq(named ++ Enum.flat_map(places, & &1.modules)), paths)
  end

  defp gather(%{target: {:module, module}} = place, found, seen, bound) do
    case for file <- place.files,
             {:ok, %{module: name} = library} <- [seen[file]],
             name == Atom.to_string(module),
             do: library do
      [] ->
        add(found, unbound(module, bound[module]))

      libraries ->
        libraries = Enum.map(libraries, &bind(&1, bound))
        add(found, %{libraries: libraries, failures: crashed(libraries)})
    end
  end

  defp gather(%{target: {:function, {module, _, _}}} = place, found, seen, bound) do
    gather(%{place | target: {:module, module}}, found, seen, bound)
  end

  defp gather(place, found, seen, bound) do
    of_files = place.files |> Enum.uniq() |> Enum.map(&{&1, seen[&1]})
    libraries = for {_, {:ok, library}} <- of_files, do: bind(library, bound)
    failures = for {_, {:error, text}} <- of_files, do: text
    other = for {file, {:other, _, text}} <- of_files, do: {file, text}

    built_in =
      for module <- place.modules,
          {nifs, table} <- [built_in(module, bound[module])],
          do: Library.built_in(module, nifs, table)

    found =
      add(found, %{libraries: libraries ++ built_in, failures: failures ++ crashed(libraries)})

    cond do
      other != [] and place.own? ->
        add(found, %{failures: for({file, text} <- other, do: own(file, text))})

      other != [] ->
        add(found, %{
          notes: [
            "no NIF libraries, and left out: " <>
              Enum.map_join(other, ", ", &Path.basename(elem(&1, 0)))
          ]
        })

      libraries ++ built_in ++ failures == [] ->
        add(found, %{notes: ["#{target_text(place.target)} has no NIF library"]})

      true ->
        found
    end
  end

  # An emulator may hide its tables, as Debian's OTP 29 does; what it is made of is known all the same.
  defp built_in(_module, {:built_in, nifs, table}), do: {nifs, table}
  defp built_in(module, {:ok, [_ | _] = nifs, _}) when module in @built_in, do: {nifs, :hidden}
  defp built_in(_module, _answer), do: nil

  defp own(file, text),
    do:
      if(text =~ ~r/is no NIF library|is not a shared library/,
        do: text,
        else: "#{file} is no NIF library: #{text}"
      )

  defp unbound(module, {:ok, [], false}),
    do: %{notes: ["#{inspect(module)} has no NIFs: it is pure Erlang"]}

  defp unbound(module, {:ok, [], true}) do
    %{
      failures: [
        "#{inspect(module)} calls load_nif, and no library that binds it lies in its application's priv folder"
      ]
    }
  end

  defp unbound(module, {kind, nifs, _} = answer) when kind in [:ok, :built_in] do
    case built_in(module, answer) do
      {nifs, table} -> %{libraries: [Library.built_in(module, nifs, table)]}
      nil -> %{libraries: [Library.unseen(module, nifs)]}
    end
  end

  defp unbound(module, :missing), do: %{failures: ["there is no module #{inspect(module)}"]}
  defp unbound(module, {:error, why}), do: %{failures: ["#{inspect(module)}: #{why}"]}

  # A module that does not load is no reason to be silent of its library.
  defp bind(library, bound) do
    case bound[String.to_atom(library.module)] do
      {:ok, nifs, _} ->
        %{library | bound: {:ok, for({name, arity} <- nifs, do: {"#{name}", arity})}}

      {:error, why} ->
        %{library | bound: {:error, why}}

      _ ->
        library
    end
  end

  # A module that ends the VM when it is loaded is more than one that declines to.
  defp crashed(libraries) do
    for %{bound: {:error, "loading it: " <> why}, module: module} <- libraries,
        do: "#{module}: loading it #{why}"
  end

  defp add(found, more), do: Map.merge(found, more, fn _key, old, new -> old ++ new end)

  defp target_text({:application, name}), do: "application #{name}"
  defp target_text({:folder, path}), do: "the folder #{path}"
  defp target_text(:all), do: "the code path"
  defp target_text({_, name}), do: "#{name}"
end
