defmodule Zstd.Native do
  @moduledoc false
  use Tame.Job

  @on_load :load
  @nifs [new_dictionary: 2, new_compressor: 3, new_decompressor: 1]

  def load, do: :erlang.load_nif(:filename.join(:code.priv_dir(:zstd), ~c"zstd_nif"), 0)

  def new_dictionary(_bytes, _level), do: :erlang.nif_error(:nif_not_loaded)
  def new_compressor(_level, _checksum, _dictionary), do: :erlang.nif_error(:nif_not_loaded)
  def new_decompressor(_dictionary), do: :erlang.nif_error(:nif_not_loaded)

  defjob(compress(compressor, data, size), iodata: [2])
  defjob(compress_slow(compressor, data, size), iodata: [2])
  defjob(compress_parts(compressor, data, ends), iodata: [2], stream: true)
  defjob(compress_parts_slow(compressor, data, ends), iodata: [2], stream: true)
  defjob(decompress(decompressor, data, limit), iodata: [2])
  defjob(decompress_parts(decompressor, data, limit, ends), iodata: [2], stream: true)
end
