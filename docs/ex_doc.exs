# What `make docs` builds with ex_doc, in the order in which a newcomer reads it.
[
  main: "readme",
  source_url: nil,
  extras:
    ~w(README.md docs/guide/well_behaved_nif.md docs/guide/async.md docs/guide/isolate.md
       docs/guide/operate.md docs/guide/conform.md docs/guide/hosts.md docs/guide/load.md
       docs/guide/descriptors.md docs/guide/drivers.md
       docs/reference/tame_h.md docs/reference/tame_hpp.md docs/reference/driver_h.md docs/reference/threads.md
       docs/reference/host_api.md docs/reference/nif_suite.md
       docs/audited.md docs/conformance.md docs/suites.md docs/architecture.md CONTRIBUTING.md CHANGELOG.md),
  groups_for_extras: [Guides: ~r"docs/guide", Reference: ~r"docs/reference"],
  groups_for_modules: [
    "Write once, choose where it runs": [:tame, :tame_fd_readers, :tame_exor, :tame_spin, :tame_echo],
    "Contain faults": [
      Tame,
      :tame_isolate_options,
      :tame_isolation,
      :tame_hosts,
      :tame_host,
      :tame_ring,
      :tame_probe
    ],
    "Measure in Erlang": ~r"^:?tame_(histogram|hgrm|meter|slices|neighbour|calibration)",
    "The labs": ~r"^Tame\."
  ],
  skip_undefined_reference_warnings_on: ["CHANGELOG.md", "docs/audited.md", "docs/guide/isolate.md", "docs/guide/operate.md"]
]
