[
  inputs: ["{mix,.formatter}.exs", "{lib,test,bench}/**/*.{ex,exs}", "examples/*/{mix.exs,config/*.exs,lib/**/*.ex,test/**/*.exs}"],
  line_length: 100
]
