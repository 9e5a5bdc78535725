[
  inputs: [
    "{mix,.formatter}.exs",
    "{lib,test,bench,soak}/**/*.{ex,exs}",
    "examples/*/mix.exs",
    "examples/*/{config,lib,test}/**/*.{ex,exs}"
  ],
  line_length: 100
]
