defmodule Tame.Digest do
  @moduledoc """
  The digest lab: a real library on tame.h, `libraries/sha3`, against OpenSSL.

    * *calls* - one call by the size of its input, from 1 byte to 1 GiB: `crypto:hash(sha3_256, _)`, the same by
      `tame_sha3`, and `kt128`, the function of the family that uses the width of the CPU for one input. The ways take
      turns, in each round in another order
    * *load* - four processes hash 1 MB each for ever, by each way, while a process that sleeps wants to wake every 10 ms:
      how much is hashed, and how late the neighbour wakes. A fast hash that holds its scheduler is no gain

  ## What it cannot see

  One machine and its OpenSSL: where that one has instructions for Keccak, or an older OpenSSL has slower code, the ratio
  is another. `tame_sha3` uses what its CPU has, as `implementation` says.
  """

  # No dependency of a project that has the labs: here?/0 asks for it.
  @compile {:no_warn_undefined, :tame_sha3}

  alias Tame.Digest.{Calls, Load}
  alias Tame.{OtherLoad, SystemInfo, Turns, Warning}

  @typedoc "Lists, maps, texts and numbers, as JSON has them."
  @type result :: %{
          tool: String.t(),
          format: pos_integer(),
          system: SystemInfo.t(),
          warnings: [Warning.t()],
          implementation: String.t(),
          openssl: String.t(),
          rounds: pos_integer(),
          seed: Turns.seed(),
          calls: [Calls.row()],
          load: [Load.row()]
        }

  @typedoc """
  What to measure:

    * `:sizes` - in bytes (default: `default_sizes/0`)
    * `:load_ms` - how long each way is under load (default: 2000)
    * `:seed` - of the order in each round (default: a new one)
    * `:command` - the command line, for the record
    * `:progress` - called before each part with `%{what: text, done: n, total: m}`
  """
  @type option :: {atom(), term()}

  @sizes [1, 64, 1024, 16_384, 262_144, 4_194_304, 67_108_864, 1_073_741_824]

  @rounds 5

  @doc "The sizes when none are asked for, in bytes."
  @spec default_sizes() :: [pos_integer()]
  def default_sizes, do: @sizes

  @doc "Whether the library is there. It is a package of its own, which the labs do not need."
  @spec here?() :: boolean()
  def here?, do: Code.ensure_loaded?(:tame_sha3) and Code.ensure_loaded?(:crypto)

  @doc "Measures both, one after the other, and returns the result as data."
  @spec measure([option()]) :: result()
  def measure(options \\ []) do
    options =
      Keyword.validate!(options,
        sizes: @sizes,
        load_ms: 2000,
        seed: Turns.seed(),
        command: "Tame.Digest.measure",
        progress: fn _ -> :ok end
      )

    system = SystemInfo.collect(options[:command])
    load = OtherLoad.start()
    parts = length(options[:sizes]) + 1
    step = fn what, done -> options[:progress].(%{what: what, done: done, total: parts}) end

    calls =
      for {bytes, index} <- Enum.with_index(options[:sizes]) do
        step.("hashing #{bytes} bytes", index)
        Calls.measure(bytes, @rounds, options[:seed])
      end

    step.("hashing beside a neighbour", parts - 1)
    under_load = Load.measure(options[:load_ms])
    system = SystemInfo.ended(system, load)

    %{
      tool: "tame.digest",
      format: 1,
      system: system,
      warnings: SystemInfo.warnings(system),
      implementation: implementation(),
      openssl: :crypto.info_lib() |> hd() |> elem(2),
      rounds: @rounds,
      seed: options[:seed],
      calls: Enum.concat(calls),
      load: under_load
    }
  end

  defp implementation, do: Atom.to_string(:tame_sha3.implementation())
end
