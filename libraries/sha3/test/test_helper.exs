# Where other work keeps the cores busy, tame warns of steps that took long; schedulers_test measures what they take.
:logger.set_primary_config(:level, :error)
ExUnit.start(timeout: 900_000, assert_receive_timeout: 5000)
