[
  inputs: [
    "{mix,.formatter}.exs",
    "{lib,test,bench}/**/*.{ex,exs}",
    "examples/*/mix.exs",
    "examples/*/{config,lib,test}/**/*.{ex,exs}"
  ],
  line_length: 100
]
