/* tame.h - write a native function once, choose where it runs.
 *
 * A NIF that computes for long holds its scheduler, and everybody who waits for that scheduler.
 * With tame.h you write the computation as a job: a state, and a step that does a little of the
 * work. The library calls the step in slices, charges the caller for the time, ends the work when
 * nobody wants it any more, and runs all of that where a word in your function table says.
 *
 * Header-only: C11 or C++17, Linux, gcc or clang, OTP 25 or newer. Nothing to link, and no symbol
 * of it leaves your library. Compile with -I of this folder (tame:include_dir/0) and of erl_nif.h.
 *
 *   docs/guide/well_behaved_nif.md   a guide, with measurements at each step
 *   docs/reference/tame_h.md         every function, type, macro and constant
 *
 * CONTENTS    1 a complete library   2 placements   3 what you write   4 what you may not do
 *             5 what the library does   6 what it does not do   7 threads   8 who owns what
 *             9 errors   10 constants   11 testing a step without a VM
 *
 *
 * 1  A COMPLETE LIBRARY
 *
 *     #include <tame.h>
 *
 *     struct sum { struct tame_input in; size_t done; uint64_t total; };
 *
 *     static enum tame_init_status init(struct tame_call *call, void *state)
 *     {
 *         struct sum *s = state;
 *         return tame_input_binary(call, 0, &s->in) ? tame_ok(call, s->in.size)
 *                                                   : tame_badarg(call, 1, "must be a binary");
 *     }
 *     static enum tame_status step(void *state, size_t units)
 *     {
 *         struct sum *s = state;
 *         for (; units > 0 && s->done < s->in.size; units--)
 *             s->total += s->in.data[s->done++];
 *         return s->done == s->in.size ? TAME_DONE : TAME_MORE;
 *     }
 *     static ERL_NIF_TERM result(struct tame_call *call, void *state)
 *     {
 *         return enif_make_uint64(call->env, ((struct sum *)state)->total);
 *     }
 *     static const struct tame_job sum = {
 *         .state_size = sizeof(struct sum), .init = init, .step = step, .result = result};
 *
 *     #define FUNCTIONS(F) F(sum_nif, 1, sum, TAME_AUTO)
 *     TAME_NIF_INIT(sum, FUNCTIONS)
 *
 * In Erlang every call goes through tame:value, because an answer may come later. It gets the NIF
 * as well, which it calls again when the steps were done on another thread:
 *
 *     sum(Bytes) -> tame:value(sum_nif(Bytes), fun sum_nif/1, {?MODULE, sum, [Bytes]}).
 *     sum_nif(_) -> erlang:nif_error(nif_not_loaded).
 *
 *
 * 2  PLACEMENTS
 *
 *   in the table          the steps run                             for
 *   --------------------  ----------------------------------------  -----------------------------
 *   TAME_AUTO             inline, then yielding, then in the pool   the default
 *                         when what is left would take over 100 ms
 *                         or 100 calls share each scheduler
 *   TAME_INLINE           to the end in one go, on the caller's     work known to stay under 1 ms
 *                         scheduler
 *   TAME_YIELDING         in slices on the caller's scheduler       up to about 100 ms
 *   TAME_DIRTY_CPU,       in one go on a dirty scheduler            steps that are long and cannot
 *   TAME_DIRTY_IO                                                   be cut; steps that block
 *   TAME_YIELDING_DIRTY   in slices on dirty CPU schedulers         100 ms and more
 *   TAME_THREAD           on a thread made for the call             rare calls that block
 *   TAME_POOL             on the library's own threads, one per     many jobs, kept apart from all
 *                         scheduler; other calls wait in a queue    schedulers
 *
 * One job may stand in several rows, each with a placement of its own.
 * A job that runs in one go on the caller's scheduler is not stopped before its end: a deadline or
 * a cancel (tame:async, tame:with) takes effect when the NIF returns.
 *
 *
 * 3  WHAT YOU WRITE: struct tame_job
 *
 *   state_size   of your struct. The state is zeroed before init.
 *   init         decodes the arguments into the state. Returns tame_ok(call, units) with the
 *                amount of work in a unit of your own (bytes, rounds, rows), or tame_badarg or
 *                tame_enomem. Keep it short: it is not cut. Give 0 units when you cannot know;
 *                TAME_AUTO then never moves to the pool.
 *   step         does at most `units` of it, 1 or more, and returns TAME_MORE or TAME_DONE. Do as
 *                much as you are asked for: the time that it takes is the measure for the next
 *                step. A unit should take well under 10 us, and all units about the same time.
 *                With no work at all step is still called once.
 *   result       makes the term to return, after TAME_DONE: in the caller's process, on a
 *                scheduler. It may raise an exception as any NIF, and find out enif_self.
 *   cleanup      frees what init and the steps took; may be NULL. Called exactly once for each
 *                call of init, also when init failed, the caller died or the library is unloaded.
 *                The state may then be as init left it halfway: free what is not zero.
 *   slice_us, dirty_slice_us, max_running, max_waiting, stack_kib    0 means the default; see 10.
 *
 *
 * 4  WHAT YOU MAY NOT DO
 *
 *   - Keep a pointer into the state, or into a binary, from one step to the next: the state moves
 *     when the job first yields, and tame_input.data is looked up anew in each slice. Keep
 *     offsets. In C++ the state must be trivially copyable, and no exception may leave any of the
 *     functions.
 *   - Keep a term in the state, or use an ErlNifEnv in step. Terms belong in init and result.
 *   - Put a member that needs more than 16-byte alignment into the state.
 *   - Take a lock in one step and hold it until another: the next step may run on another thread,
 *     or never.
 *   - Block in a step, but under TAME_THREAD and TAME_DIRTY_IO.
 *   - Return {'$tame', ...} from result, or take it as an argument: such tuples are between the
 *     library and tame:value.
 *   - Define ERL_NIF_INIT or a load function of your own, or use priv_data: TAME_NIF_INIT does.
 *
 * What you need not do: read a clock, charge reductions, call enif_schedule_nif.
 *
 *
 * 5  WHAT THE LIBRARY DOES FOR EVERY JOB
 *
 *   Slices     100 us on a normal scheduler, 5 ms on a dirty one. The amount of each step follows
 *              the rate that was measured, and the clock is read about every 10 us; the rate of each
 *              row is kept for later calls. A slice lasts as long as said plus at most one step. On
 *              a dirty scheduler or its own thread a job calls sched_yield() every 100 us, then runs
 *              for at least as long as it was off the core.
 *   Charging   4000 reductions per ms used on a normal scheduler, result included, remainders
 *              carried over; short calls are charged as well. A call that owes more than its
 *              timeslice yields until it has paid. Every slice that is not the last ends the
 *              timeslice, so that the scheduler really moves on: 100 us then cost all that is left
 *              of the 4000.
 *   Stop       When the caller dies the job ends: at its next hop (yielding), its next step
 *              (thread, pool), its next 5 ms (dirty); cleanup runs, and no result is made.
 *              TAME_INLINE is not interrupted. Deadlines and cancelling are tame:with/2,
 *              tame:async/3 and tame:cancel/1: they end the process that made the call.
 *   Admission  At most max_running calls of a row run at once. Others wait in receive,
 *              first come, first served; more than max_waiting are refused at once. A call has its
 *              place until cleanup. The pool has its queue whether or not max_running is set.
 *   Telling    When the application tame runs, it is told how far a call is, each 100 ms
 *              (tame:async/3 with progress), and the rate of each row (tame:calibration/0).
 *   Threads    of its own have the stack that their job asks for (the pool's: the largest), and run
 *              on any CPU of the VM's, also where its schedulers are bound (+sbt).
 *   Halt       On OTP 26 and newer a halting VM waits for the calls that are in the library; those
 *              on dirty schedulers and in the pool end at their next step.
 *   Upgrade    A module loaded anew gets a pool, rates and a resource type of its own; jobs in
 *              flight end in the old one, whose code the VM keeps until the last of them has. A
 *              call that waits asks the new one for its result, which has it from the old one.
 *
 *
 * 6  WHAT IT DOES NOT DO
 *
 *   - Interrupt a step. A unit that takes 20 ms takes 20 ms.
 *   - Cut init and result. A list of 10^6 elements takes some 10 ms to make, and the caller's
 *     scheduler has nothing else meanwhile: such a job is better dirty, whose result is as well.
 *   - Catch a crash: a segmentation fault in a step ends the VM, in every placement.
 *   - Raise an error from step. Note it in the state, and raise or return it from result.
 *   - Run on Windows.
 *
 *
 * 7  THREADS
 *
 *               auto, inline, yielding   dirty_cpu, dirty_io   yielding_dirty   thread, pool
 *     init      caller's scheduler       dirty scheduler       caller's         caller's
 *     step      caller's scheduler (*)   dirty scheduler       dirty CPU        own thread
 *     result    caller's scheduler       dirty scheduler       dirty CPU        caller's
 *     cleanup   as result; of a call that ended early: any thread
 *     (*) of auto: a thread of the pool from when it has moved there
 *
 *   All functions of one call run one after the other; two calls run at the same time. Two steps
 *   of a yielding job may run on two threads: no thread-local variables across steps. result never
 *   runs on an own thread, where some terms cannot be made at all: docs/reference/threads.md says
 *   what else of enif_* may be called where.
 *
 *
 * 8  WHO OWNS WHAT
 *
 *   state               the library. Yours is what you hang on it: free it in cleanup.
 *   struct tame_input   the library keeps the binary alive until cleanup. Do not write to it.
 *   struct tame_output  the state, from tame_output_new on; free it in cleanup with
 *                       tame_output_free. After tame_output_term the term owns it, and
 *                       tame_output_free does nothing.
 *   struct tame_call    the library; valid during the call of init or result.
 *
 *
 * 9  ERRORS, as tame:value raises them in the name of your Erlang function
 *
 *   badarg                 from tame_badarg; the shell prints the argument's number and your
 *                          sentence
 *   enomem                 from tame_enomem, or the library itself found no memory
 *   {tame, busy}           max_waiting calls wait already
 *   {tame, system_limit}   no thread could be made
 *   {tame, init_failed}    init returned TAME_INIT_FAILED, and neither tame_badarg nor tame_enomem
 *   {tame, input_outside_state}   a struct tame_input that does not lie in the state
 *   {tame, not_the_nif}    the fun given to tame:value does not take what the NIF takes
 *
 *   What result raises is raised as it is, in the name of the NIF.
 *
 *   A job without state_size, init, step or result, with more than TAME_MAX_ARGS arguments, with a
 *   stack_kib above TAME_MAX_STACK_KIB, or without any argument where a call may have to wait
 *   (max_running, TAME_AUTO, TAME_THREAD, TAME_POOL), fails to load, and standard error says which
 *   and why.
 *   A row that appears twice does not compile.
 *
 *
 * 10  CONSTANTS, and the member of struct tame_job that sets another value for a job
 *
 *   TAME_SLICE_US         100     slice_us
 *   TAME_DIRTY_SLICE_US   5000    dirty_slice_us
 *   TAME_MAX_WAITING      10000   max_waiting
 *   TAME_MAX_STACK_KIB    65536   -; stack_kib is the VM's default, 8 MiB as a rule
 *   TAME_CLOCK_CHECK_NS          10000   -
 *   TAME_MAX_ARGS         8       -
 *   TAME_MAX_INPUTS       8       -
 *   TAME_VERSION          the version of tame, a string
 *
 *   There is nothing to define before the #include. Names with `impl` in them are private.
 *
 *
 * 11  TESTING A STEP WITHOUT A VM
 *
 *   A step is plain C on plain data. Put state and step into a header that includes tame/job.h,
 *   fill the state by hand (in.data and in.size are all that a step sees of a binary) and call the
 *   step with 1, 2, 3 ... units: every cut must give the same answer. tame/slice.h, which decides
 *   how many units, is plain C too. See c_src/natives/exor/exor.h and test/c/exor_test.c. */
#ifndef TAME_H
#define TAME_H

#define TAME_VERSION "0.1.0"

#include "tame/nif.h"

#endif
