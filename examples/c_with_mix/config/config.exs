import Config

if config_env() != :prod do
  config :tame_labs, latency_methods: [Copycat.Method]
end
