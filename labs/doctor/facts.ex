defmodule Tame.Doctor.Facts do
  @moduledoc """
  What the doctor looks at: files, programs, and the application tame, which it starts.
  """

  alias Tame.SystemInfo

  @typedoc "`present?` of files and programs; `start` is how the application's start went; `info` is `:tame.info/0`."
  @type t :: %{
          otp: String.t(),
          erts: String.t(),
          native_dir: Path.t(),
          natives: [{String.t(), boolean()}],
          other_erts: [String.t()],
          labs_dir: Path.t(),
          labs?: boolean(),
          header: Path.t(),
          header?: boolean(),
          tools: [{String.t(), boolean()}],
          assets: {:ok, term()} | {:error, String.t()},
          start: :ok | {:error, term()},
          configured: term(),
          info: %{module() => map()},
          now: DateTime.t(),
          system: SystemInfo.t()
        }

  @natives ~w(tame_host tame_ring_nif.so tame_permits.so tame_iovec.so)

  @doc "Looks. `command` is the command line that asked."
  @spec collect(String.t()) :: t()
  def collect(command) do
    erts = to_string(:erlang.system_info(:version))
    header = Path.join([to_string(:code.root_dir()), "erts-#{erts}", "include", "erl_nif.h"])
    start = quietly(&start/0)

    %{
      otp: to_string(:erlang.system_info(:otp_release)),
      erts: erts,
      native_dir: to_string(:tame_native.dir()),
      natives: for(name <- @natives, do: {name, File.regular?(:tame_native.path(name))}),
      other_erts: other_erts(to_string(:tame_native.dir()), erts),
      labs_dir: to_string(:tame_labs_native.dir()),
      labs?: File.dir?(:tame_labs_native.dir()),
      header: header,
      header?: File.regular?(header),
      tools: for(name <- ~w(cc make), do: {name, System.find_executable(name) != nil}),
      assets: Tame.Report.assets(),
      start: start,
      configured: Application.get_env(:tame, :isolate, []),
      info: if(start == :ok, do: :tame.info(), else: %{}),
      now: DateTime.utc_now(),
      system: SystemInfo.collect(command)
    }
  end

  defp start do
    case Application.ensure_all_started(:tame) do
      {:ok, _} -> :ok
      {:error, {_, why}} -> {:error, why}
    end
  end

  # What is logged when it does not start is in the error too.
  defp quietly(fun) do
    %{level: level} = :logger.get_primary_config()
    :ok = :logger.set_primary_config(:level, :none)

    try do
      fun.()
    after
      :logger.set_primary_config(:level, level)
    end
  end

  # For which other emulators natives lie beside those of this one.
  defp other_erts(dir, erts) do
    for "erts-" <> version <-
          Enum.map(Path.wildcard(Path.join(Path.dirname(dir), "erts-*")), &Path.basename/1),
        version != erts,
        do: version
  end
end
