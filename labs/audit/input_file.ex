defmodule Tame.Audit.InputFile do
  @moduledoc """
  The user's own generator: an Elixir file whose value is `fn size -> arguments end`. It runs where the audited
  function runs, so that its arguments are not copied; `tame_audit_input` keeps it.
  """

  @doc "Reads the file. Exceptions of the file, and later of its function, become words."
  @spec load(Path.t()) :: :ok | {:error, String.t()}
  def load(path) do
    case Code.eval_file(path) do
      {fun, _} when is_function(fun, 1) ->
        :tame_audit_input.keep(&made(fun, &1))

      _ ->
        {:error, "its value is no function of a size, as in: fn size -> [argument] end"}
    end
  rescue
    error -> {:error, Exception.message(error)}
  catch
    kind, reason -> {:error, "#{kind}: #{inspect(reason)}"}
  end

  defp made(fun, bytes) do
    {:ok, fun.(bytes)}
  rescue
    error -> {:error, "raised for #{bytes}: #{Exception.message(error)}"}
  catch
    kind, reason -> {:error, "#{kind} for #{bytes}: #{inspect(reason, limit: 8)}"}
  end
end
