[
  inputs: [
    "{mix,.formatter}.exs",
    "{labs,test}/mix.exs",
    "{lib,test,bench,soak}/**/*.{ex,exs}",
    "labs/{latency,reductions,contention,collapse,audit,watch,calibrate,report,shared,jobs,tasks}/**/*.ex",
    "examples/*/mix.exs",
    "examples/*/{config,lib,measure,test}/**/*.{ex,exs}"
  ],
  line_length: 100
]
