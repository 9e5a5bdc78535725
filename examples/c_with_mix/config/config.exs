import Config

config :tame, latency_methods: [Copycat.Method]
