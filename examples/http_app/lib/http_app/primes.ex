defmodule HttpApp.Primes do
  @moduledoc "How many primes there are, counted by a job of tame.h in its pool (`c_src/primes.c`)."
  use Tame.Job

  @on_load :load

  @doc "How many primes are below a number, up to 2^32. Raises `{:tame, :busy}` when too many calls wait."
  @spec below(0..4_294_967_295) :: non_neg_integer()
  defjob(below(number))

  @doc false
  def load, do: :erlang.load_nif(:filename.join(:code.priv_dir(:http_app), ~c"primes"), 0)
end
