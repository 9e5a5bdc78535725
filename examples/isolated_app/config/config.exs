import Config

config :tame, isolate: [:jiffy]
