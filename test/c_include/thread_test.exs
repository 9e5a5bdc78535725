defmodule Tame.ThreadTest do
  # c_include/tame/thread.h: the stack of a library's own threads, and the CPUs they may run on.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  # A step that takes 60 MiB of stack at once and touches its far end, more than any default gives; the result is
  # on how many CPUs its thread may run.
  @c """
  #define _GNU_SOURCE
  #include <sched.h>
  #include <tame.h>

  struct deep { int cpus; };

  static int touch(volatile char *from, size_t bytes) { from[0] = 1; from[bytes - 1] = 1; return from[0]; }

  static enum tame_status init(struct tame_call *call, void *state)
  { (void)state; return tame_ok(call, 1); }

  static enum tame_status step(struct tame_call *call, void *state, size_t units)
  {
      struct deep *deep = state;
      char stack[((size_t)STACK_MIB << 20) + 64];
      cpu_set_t cpus;

      (void)call;
      (void)units;
      (void)touch(stack, sizeof stack);
      CPU_ZERO(&cpus);
      sched_getaffinity(0, sizeof cpus, &cpus);
      deep->cpus = CPU_COUNT(&cpus);
      return TAME_DONE;
  }

  static ERL_NIF_TERM result(struct tame_call *call, void *state)
  { return enif_make_int(call->env, ((struct deep *)state)->cpus); }

  static const struct tame_job deep = {.state_size = sizeof(struct deep), .init = init, .step = step,
                                       .result = result, .stack_kib = STACK_KIB};
  #define FUNCTIONS(JOB, NIF) JOB(inline_nif, 0, deep, TAME_INLINE) \\
      JOB(thread_nif, 0, deep, TAME_THREAD) JOB(pool_nif, 0, deep, TAME_POOL)
  TAME_NIF_INIT(deep, FUNCTIONS)
  """

  @erl """
  -module(deep).
  -export([inline/0, thread/0, pool/0]).
  -compile({parse_transform, tame_job}).
  -tame([inline/0, thread/0, pool/0]).
  -on_load(load/0).
  load() -> erlang:load_nif("./deep", 0).
  """

  defp library(stack_mib, stack_kib) do
    dir = tmp_dir!()
    File.write!(Path.join(dir, "deep.c"), @c)
    File.write!(Path.join(dir, "deep.erl"), @erl)
    macros = ["-DSTACK_MIB=#{stack_mib}", "-DSTACK_KIB=#{stack_kib}"]
    assert {"", 0} = compile(dir, "deep.c", macros)
    assert {"", 0} = erlc(dir, "deep.erl")
    dir
  end

  test "a job has the stack that it asks for, on its own thread and in the pool" do
    dir = library(60, 64 * 1024)
    assert {"ok", 0} = erl(dir, "deep:thread(), deep:pool(), io:format(\"ok\")")
  end

  test "without it that stack is not there" do
    {_, status} = erl(library(60, 0), "deep:thread()")
    assert status != 0
  end

  test "threads are not bound to the CPU of the scheduler that started them" do
    dir = library(0, 0)
    cpus = System.schedulers()

    if cpus == 1, do: IO.puts("skip: one CPU, nothing to be bound to")

    {out, 0} =
      erl(dir, "io:format(\"~w\", [[deep:inline(), deep:thread(), deep:pool()]])", ~w(+sbt db))

    assert out == "[1,#{cpus},#{cpus}]"
  end
end
