import Config

# Read when the release starts: where it listens, and its certificate with its key, in PEM.
config :http_app,
  port: String.to_integer(System.get_env("PORT", "8443")),
  certfile: System.get_env("TLS_CERT") || raise("TLS_CERT is not set: a certificate in PEM"),
  keyfile: System.get_env("TLS_KEY") || raise("TLS_KEY is not set: its key in PEM")
