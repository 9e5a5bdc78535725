defmodule Tame.ThreadsTable do
  @moduledoc """
  Which `enif_*` may be called on which thread: one list for `docs/reference/threads.md`, which has it as a table, and
  for `test/threads/threads_test.exs`, which does what each row says (`Tame.Threads`).

  To write the table into the document: `MIX_ENV=test mix run --no-start -e "Tame.ThreadsTable.write()"`.
  """

  @document "../docs/reference/threads.md"

  # A row: functions, the uses of Tame.Threads that show it, where the source says so, and where it does not just work:
  # `ends` (the VM does), `error` (what the manual calls one), `nothing` (it does nothing), by kind of thread.
  # `until`: in which release of each OTP that was mended, `nil` where it is not known to be.
  @own [:thread]
  @callbacks ~w(dtor dtor_thread down stop)a
  @off_normal ~w(dirty_cpu dirty_io thread)a
  @everywhere [:normal, :dirty_cpu, :dirty_io, :thread] ++ @callbacks

  @large_maps [{:map, 129}, {:map, 1000}, {:map, 100_000}, :nested_maps, :map_keys]
  # One for each column of the second table; the release is the first that has GH-8208 mended.
  @mended %{25 => "25.3.2.18", 26 => "26.2.5.9", 27 => "27.3", 28 => "28.0", 29 => "29.0"}
  @otps Enum.sort(Map.keys(@mended))

  def rows do
    [
      %{
        what: "`enif_make_copy`, of any term",
        ops: [:copy],
        source: "`make_copy`, erl_nif.c; `copy_struct`, copy.c: keeps a map's tree as it is"
      },
      %{
        what: "`enif_term_to_binary`, of any term",
        ops: [:to_binary],
        source: "`enif_term_to_binary`, erl_nif.c; `erts_encode_ext`, external.c"
      },
      %{
        what: "`enif_binary_to_term`, without a map of more than 128 keys in it",
        ops: [:from_binary],
        except: @large_maps,
        source: "`dec_term`, external.c"
      },
      %{
        what: "`enif_binary_to_term`, with one, at any depth",
        ops: [:from_binary],
        only: [{:map, 129}, {:map, 100_000}, :nested_maps, :map_keys],
        ends: @own,
        until: @mended,
        source:
          "`dec_term`, external.c → `erts_hashmap_from_array`, erl_map.c → `erts_qsort`, utils.c " <>
            "→ `erts_sched_local_random`, erl_process.h, which takes the scheduler's data, NULL there (GH-8208)"
      },
      %{
        what: "`enif_make_map_from_arrays`, up to 128 keys",
        ops: [:map_from_arrays],
        except: @large_maps,
        source: "`erts_map_from_ks_and_vs`, erl_map.c"
      },
      %{
        what: "`enif_make_map_from_arrays`, of more",
        ops: [:map_from_arrays],
        only: [{:map, 129}, {:map, 1000}, {:map, 100_000}],
        ends: @own,
        until: @mended,
        source: "`erts_map_from_ks_and_vs`, erl_map.c → `erts_qsort`, as above (GH-8208)"
      },
      %{
        what:
          "`enif_make_map_put`, `enif_make_map_update`, `enif_make_map_remove`, " <>
            "`enif_get_map_value`, also to and from any number of keys",
        ops: [:map_put, :map_update],
        source:
          "`erts_maps_put`, `erts_maps_update`, `erts_maps_take`, erl_map.c: one path of the tree, nothing to sort"
      },
      %{
        what: "`enif_map_iterator_*`",
        ops: [:map_iterator],
        source: "`enif_map_iterator_create`, erl_nif.c"
      },
      %{
        what: "`enif_compare`, `enif_is_identical`, `enif_hash` (both), of any term",
        ops: [:compare, :hash_phash2, :hash_internal],
        source:
          "`erts_cmp_compound`, `make_hash2`, utils.c; their stacks come from an allocator with a lock there"
      },
      %{
        what: "`enif_snprintf` and its like, with `%T` of any term",
        ops: [:print],
        source: "`erts_vsnprintf`, utils.c; `print_term`, erl_printf_term.c"
      },
      %{
        what: "lists, tuples, strings, numbers, atoms: `enif_make_*`, `enif_get_*`",
        ops: [:list, :tuple, :atoms, :numbers],
        source: "`alloc_heap`, erl_nif.c; `erts_atom_put`, atom.c, under a lock"
      },
      %{
        what:
          "`enif_alloc_binary` to `enif_release_binary`, `enif_make_new_binary`, " <>
            "`enif_make_sub_binary`, `enif_make_resource_binary`",
        ops: [:binary],
        source: "`enif_alloc_binary`, `enif_make_binary`, erl_nif.c"
      },
      %{
        what: "`enif_inspect_binary`, `enif_inspect_iolist_as_binary`",
        ops: [:iolist],
        source:
          "`enif_inspect_iolist_as_binary`, erl_nif.c: a copy lives as long as the environment"
      },
      %{what: "`enif_inspect_iovec`, `enif_ioq_*`", ops: [:ioq], source: "erl_io_queue.c"},
      %{
        what: "`enif_make_ref`, `enif_make_unique_integer`",
        ops: [:make_ref, :unique_integer],
        source:
          "`erts_make_ref_in_buffer`, `erts_raw_get_unique_integer`, " <>
            "erl_bif_unique.c: without a scheduler one counter for all"
      },
      %{
        what: "`enif_monotonic_time`, `enif_time_offset`",
        ops: [:clocks],
        error: @own,
        source:
          "`erts_napi_monotonic_time`, erl_time_sup.c: `ERL_NIF_TIME_ERROR` without a scheduler"
      },
      %{
        what: "`enif_system_info`, `enif_convert_time_unit`",
        ops: [:system_info],
        source: "`driver_system_info`, io.c"
      },
      %{
        what:
          "`enif_send`, copied or with an environment, of any term; `caller_env` NULL on an own thread",
        ops: [:send_copied, :send_moved],
        source: "`enif_send`, erl_nif.c"
      },
      %{
        what:
          "`enif_whereis_pid`, `enif_is_process_alive`, `enif_is_port_alive`; `caller_env` as for `enif_send`",
        ops: [:whereis, :alive, :port_alive],
        source: "`call_whereis`, `enif_is_process_alive`, `enif_is_port_alive`, erl_nif.c"
      },
      %{
        what: "`enif_monitor_process`, `enif_demonitor_process`; `caller_env` as for `enif_send`",
        ops: [:monitor],
        source: "`enif_monitor_process`, erl_nif.c"
      },
      %{
        what: "`enif_port_command` to an open port, with any environment",
        ops: [:port_command],
        source: "`enif_port_command`, erl_nif.c"
      },
      %{
        what: "`enif_port_command` with `caller_env` NULL",
        ops: [:port_command_null],
        ends: @everywhere,
        source: "`enif_port_command`, erl_nif.c: `erts_exit`, whatever the manual says"
      },
      %{
        what: "`enif_port_command` to a port that is closed",
        ops: [:port_command_closed],
        ends: @off_normal,
        until: Map.new(@otps, &{&1, nil}),
        source:
          "`enif_port_command`, erl_nif.c: `erts_port_dec_refc(prt)` with `prt` NULL (GH-11221)"
      },
      %{
        what: "`enif_select`",
        ops: [:select_event],
        source: "`enif_select_x`, erl_check_io.c, under the event's lock"
      },
      %{
        what: "`enif_alloc_resource`, `enif_make_resource`, `enif_release_resource`",
        ops: [:resource],
        source:
          "`nif_resource_dtor_prologue`, erl_nif.c: the destructor is scheduled, on this scheduler, " <>
            "or on the first where this thread is none"
      },
      %{
        what: "`enif_self` (NULL in an environment that is no process's)",
        ops: [:self],
        source: "`enif_self`, erl_nif.c"
      },
      %{
        what: "`enif_priv_data`, with an environment of `enif_alloc_env`",
        ops: [:priv_data],
        ends: @own ++ @callbacks,
        source: "`enif_priv_data`, erl_nif.c: `env->mod_nif` is NULL there"
      },
      %{
        what: "`enif_consume_timeslice`, with an environment that is no process's",
        ops: [:consume_timeslice],
        ends: @own ++ @callbacks,
        nothing: ~w(dirty_cpu dirty_io)a,
        source:
          "`enif_consume_timeslice`, erl_nif.c: `BUMP_REDS` of no process; returns 0 on a dirty scheduler"
      },
      %{
        what: "`enif_is_current_process_alive`, with such an environment",
        ops: [:current_alive],
        ends: @own ++ @callbacks,
        source: "`enif_is_current_process_alive`, erl_nif.c: `erts_exit`"
      },
      %{
        what: "`enif_schedule_nif`, with such an environment",
        ops: [:schedule_nif],
        ends: @own ++ @callbacks,
        source: "`schedule`, erl_nif.c: it is a process that is scheduled"
      },
      %{
        what: "sending what `enif_raise_exception` or `enif_make_badarg` returned",
        ops: [:raise_and_send],
        ends: @everywhere,
        source: "`size_object`, copy.c: it is no term"
      }
    ]
  end

  @doc "What the row says of a kind of thread: :works, :error, :nothing or :ends."
  def on(row, kind) do
    Enum.find([:ends, :error, :nothing], :works, &(kind in Map.get(row, &1, [])))
  end

  @doc "Whether what `ends` a VM does so in the VM that asks; :unknown where it may be mended by now."
  def ends?(%{until: until}) do
    otp = :erlang.system_info(:otp_release) |> List.to_integer()

    case Map.get(until, otp) do
      nil -> if otp == 25, do: true, else: :unknown
      release -> numbers(version(otp)) < numbers(release)
    end
  end

  def ends?(_row), do: true

  # Such as 25.2.3; what follows a sign that is no number is the distributor's.
  defp version(otp) do
    path = Path.join([:code.root_dir(), "releases", to_string(otp), "OTP_VERSION"])

    case File.read(path) do
      {:ok, text} -> String.trim(text)
      {:error, _} -> to_string(otp)
    end
  end

  defp numbers(version) do
    Regex.run(~r/^[\d.]+/, version)
    |> hd()
    |> String.trim(".")
    |> String.split(".")
    |> Enum.map(&String.to_integer/1)
  end

  @columns [
    {"normal", [:normal]},
    {"dirty", [:dirty_cpu, :dirty_io]},
    {"own thread", @own},
    {"callbacks", @callbacks}
  ]

  @words %{works: "works", error: "error", nothing: "nothing", ends: "**ends the VM**"}

  @doc "Both tables of the document."
  def markdown do
    heads = for {head, _} <- @columns, do: head

    main =
      for row <- rows() do
        cells =
          for {_, kinds} <- @columns,
              do: kinds |> Enum.map(&@words[on(row, &1)]) |> Enum.uniq() |> Enum.join(", ")

        ["| ", Enum.join([row.what] ++ cells ++ [row.source], " | "), " |\n"]
      end

    mended =
      for %{until: until} = row <- rows() do
        cells = for otp <- @otps, do: mended(otp, until[otp])
        ["| ", Enum.join([row.what | cells], " | "), " |\n"]
      end

    IO.iodata_to_binary([
      "| function | #{Enum.join(heads, " | ")} | source in the emulator |\n",
      "| --- | #{Enum.map_join(heads, " | ", fn _ -> "---" end)} | --- |\n",
      main,
      "\n",
      "| what ends the VM above | #{Enum.join(@otps, " | ")} |\n",
      "| --- | #{Enum.map_join(@otps, " | ", fn _ -> "---" end)} |\n",
      mended
    ])
  end

  defp mended(_otp, nil), do: "ends it"
  defp mended(otp, release), do: if(release == "#{otp}.0", do: "works", else: "until #{release}")

  @from "<!-- from test/support/threads_table.ex -->\n\n"
  @to "\n<!-- to here -->\n"

  @doc "The tables as the document has them."
  def written do
    [_, rest] = File.read!(@document) |> String.split(@from)
    [table, _] = String.split(rest, @to)
    table
  end

  def write do
    text = File.read!(@document)

    File.write!(
      @document,
      String.replace(text, @from <> written() <> @to, @from <> markdown() <> @to)
    )
  end
end
