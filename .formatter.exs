[
  inputs: [
    "{mix,.formatter}.exs",
    "labs/mix.exs",
    "libraries/*.exs",
    # Not test/tmp.
    "test/*.exs",
    "test/{bench,c,c_include,host,isolate,job,labs,nif_suite,package,ring,support,threads,tools}/**/*.{ex,exs}",
    "{lib,bench,soak}/**/*.{ex,exs}",
    "labs/{latency,reductions,contention,isolation,collapse,audit,watch,calibrate,doctor,digest}/**/*.ex",
    "labs/{native_io,load,report,shared,jobs,tasks}/**/*.ex",
    "examples/*/mix.exs",
    "examples/*/{bench,config,lib,measure,test}/**/*.{ex,exs}"
  ],
  line_length: 100
]
