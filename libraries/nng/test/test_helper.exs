# A test kills a reader, whose supervisor tells.
:logger.set_primary_config(:level, :critical)
{:ok, _} = Application.ensure_all_started(:tame_nng)
ExUnit.start(timeout: 900_000, assert_receive_timeout: 5000)
