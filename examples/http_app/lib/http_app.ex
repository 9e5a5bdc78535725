defmodule HttpApp do
  @moduledoc "The application: an HTTPS server in its supervision tree."
  use Application

  @impl true
  def start(_type, _args) do
    env = Map.new(Application.get_all_env(:http_app))

    server =
      {Tame.HTTP,
       name: HttpApp.Server,
       port: env.port,
       tls: %{certfile: env.certfile, keyfile: env.keyfile},
       plug: HttpApp.Router,
       static: %{"/health" => {200, %{}, "fine\n"}}}

    Supervisor.start_link([server], strategy: :one_for_one, name: HttpApp.Supervisor)
  end
end
