import Config

config :tame_labs, latency_methods: [Copycat.Method]
