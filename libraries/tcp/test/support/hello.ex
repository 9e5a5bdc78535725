defmodule Tame.Tcp.Test.Hello do
  @moduledoc false
  # A handler of cowboy, which is not there when this is compiled.
  @compile {:no_warn_undefined, :cowboy_req}

  def init(request, state), do: {:ok, answer(:cowboy_req.path(request), request), state}

  defp answer("/large", request), do: reply(:binary.copy("x", 10_000_000), request)
  defp answer("/count", request), do: count(:cowboy_req.read_body(request), 0)

  defp answer("/file", request) do
    %{size: size} = File.stat!("mix.exs")
    :cowboy_req.reply(200, %{}, {:sendfile, 0, size, "mix.exs"}, request)
  end

  defp answer(_, request), do: reply("hello from tame_tcp\n", request)

  defp count({:more, part, request}, bytes),
    do: count(:cowboy_req.read_body(request), bytes + byte_size(part))

  defp count({:ok, part, request}, bytes), do: reply("#{bytes + byte_size(part)}\n", request)

  defp reply(body, request), do: :cowboy_req.reply(200, %{}, body, request)
end
