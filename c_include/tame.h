/* tame.h - write a native function once, choose where it runs.
 *
 * A NIF that computes for long holds its scheduler, and everybody who waits for that scheduler.
 * With tame.h you write the computation as a job: a state, and a step that does a little of the
 * work. The library calls the step in slices, charges the caller for the time, ends the work when
 * nobody wants it any more, and runs all of that where a word in your function table says.
 *
 * Header-only: C11 or C++17, 64 bits, gcc or clang, OTP 25 or newer. Nothing to link, and no symbol
 * of it leaves your library. Compile with -I of this folder (tame:include_dir/0) and of erl_nif.h.
 *
 *   docs/guide/well_behaved_nif.md   a guide, with measurements at each step
 *   docs/reference/tame_h.md         every function, type, macro and constant
 *   tame.hpp                         the same for C++, with types: a job is one struct and one line
 *
 *
 * 1  A COMPLETE LIBRARY
 *
 *     #include <tame.h>
 *
 *     struct sum { struct tame_input in; size_t done; uint64_t total; };
 *
 *     static enum tame_status init(struct tame_call *call, void *state)
 *     {
 *         struct sum *s = state;
 *         return tame_input_binary(call, 0, &s->in) ? tame_ok(call, s->in.size)
 *                                                   : tame_badarg(call, 1, "must be a binary");
 *     }
 *     static enum tame_status step(struct tame_call *call, void *state, size_t units)
 *     {
 *         struct sum *s = state;
 *         (void)call;
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
 *     #define FUNCTIONS(JOB, NIF) JOB(sum_nif, 1, sum, TAME_AUTO)
 *     TAME_NIF_INIT(sum, FUNCTIONS)
 *
 * In Erlang an attribute writes sum/1, which calls sum_nif/1 and waits where that has to wait; in
 * Elixir it is `use Tame.Job` and `defjob sum(bytes)`:
 *
 *     -compile({parse_transform, tame_job}).
 *     -tame([sum/1]).
 *
 *
 * 2  PLACEMENTS
 *
 *   in the table          the steps run                             for
 *   --------------------  ----------------------------------------  -----------------------------
 *   TAME_AUTO             inline, then yielding; when they have     the default
 *                         used 100 ms, or will, in the pool
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
 * One job may stand in several rows. A row NIF(name, arity, function, TAME_INLINE) is a plain NIF,
 * with a stub of your own; it may be dirty as well.
 *
 *
 * 3  WHAT YOU WRITE: struct tame_job
 *
 *   state_size   of your struct. The state is zeroed before init.
 *   init         decodes the arguments into the state. Returns tame_ok(call, units) with the
 *                amount of work in a unit of your own (bytes, rounds, rows) or TAME_UNKNOWN, or a
 *                failure. Keep it short: it is not cut.
 *   step         does at most `units` of it, 1 or more, and returns TAME_MORE or TAME_DONE, or a
 *                failure. Do as much as you are asked for, and one unit at least: the time that it
 *                takes is the measure for the next step. A unit should take well under 10 us, and
 *                all units about the same time. With no work at all step is still called once.
 *   build        makes a large result bit by bit, as step does, in call->root; may be NULL.
 *   result       returns the term: in the caller's process, on a scheduler. It may raise an
 *                exception as any NIF, and find out enif_self.
 *   cleanup      frees what init and the steps took; may be NULL. Called exactly once for each
 *                call of init, also when init failed, the caller died or the library is unloaded.
 *                The state may then be as init left it halfway: free what is not zero.
 *   move         moves the state, for one that memcpy cannot move; NULL else.
 *   terms        1: the steps use call->env, call->argv or call->root.
 *   slice_us, dirty_slice_us, max_running, max_waiting, stack_kib    0 means the default; see 10.
 *
 * Failures, from init, step, build and result: return tame_badarg(call, number, sentence),
 * tame_fail(call, reason) or tame_enomem(call); from result 0, after one of them.
 *
 *
 * 4  WHAT YOU MAY NOT DO
 *
 *   - Keep a pointer into the state, or into a binary, from one step to the next: the state moves
 *     when the job first yields, and tame_input.data is looked up anew in each slice. Keep
 *     offsets. In C++ no exception may leave any of the functions (tame.hpp sees to
 *     that).
 *   - Keep a term in the state: terms are kept in call->root.
 *   - Put a member that needs more than 16-byte alignment into the state.
 *   - Hold a lock from one step to another: the next may run on another thread, or never. Block in a
 *     step, but under TAME_THREAD and TAME_DIRTY_IO.
 *   - Return {'$tame', _, _} from result: such tuples are between the library and Erlang.
 *   - Define ERL_NIF_INIT, or use priv_data: TAME_NIF_INIT does, and has hooks for both.
 *
 *
 * 5  TERMS, STREAMS, CONTEXTS
 *
 *   Terms      A job with terms = 1 may walk and build terms in its steps: what it keeps from one to
 *              the next it puts into call->root[0 .. TAME_MAX_ROOTS-1]. Such a job stays on the VM's
 *              schedulers: TAME_AUTO moves it to the dirty ones, TAME_THREAD and TAME_POOL refuse
 *              it. build has the roots whatever the job says.
 *   Iodata     tame_input_iodata gives a list's binaries one after the other, without a copy.
 *   Outputs    tame_output_new(&out, size): a binary of a known size. tame_output_append(call, &out,
 *              bytes, size): one that grows; tame_output_room and _wrote: the same, written in place.
 *              What has grown lies in pieces, and data is NULL, until the steps are done; then the
 *              library puts it together, in slices, and build and result find it in data. Such an
 *              output is a member of the state. tame_output_shrink lowers the size. From 4 MiB on a
 *              binary lies on large pages where the system has them.
 *   Streams    step returns tame_emit(call, part); the job goes on when the next part is wanted
 *              (tame:stream/2). Nothing is read ahead. A part that is an output of more than
 *              64 KiB: call tame_output_gather before, until it says TAME_DONE; else
 *              tame_output_term puts it together in one go.
 *   Contexts   TAME_RESOURCE(zctx, struct zctx, destroy) and .resources in TAME_NIF_INIT: a plain NIF
 *              makes one, a job claims it in init (tame_claim) until its cleanup; other calls of the
 *              same context wait, first come first served.
 *
 *
 * 6  WHAT THE LIBRARY DOES FOR EVERY JOB
 *
 *   Slices     100 us on a normal scheduler, down to 15 us where many jobs share it, 5 ms on a dirty
 *              one. The amount of each step follows the rate that was measured; the rate of each
 *              row is kept for later calls, which begin with 0.5 us of work all the same. A slice
 *              lasts as long as said plus at most one step.
 *   Charging   4000 reductions per ms of CPU time on a normal scheduler, init and result included;
 *              short calls as well: where those of a row take 2 us or less, one in 8 to 15 on a
 *              thread is measured, and the others are charged what such calls take; after one
 *              that may have been longer the next 16 are measured. A call that owes more than
 *              its timeslice yields until it has paid. Every slice that is not the last ends the
 *              timeslice.
 *   Stop       When the caller dies the job ends: at its next hop (yielding), its next step
 *              (thread, pool), its next 5 ms (dirty). TAME_INLINE is not interrupted.
 *   Deadline   tame:with/2, or deadline_ms in -tame: the job ends after the step in which it passes.
 *   Admission  At most max_running calls of a row run at once. Others wait in receive,
 *              first come, first served; more than max_waiting are refused at once. A call has its
 *              place until cleanup. The pool has its queue whether or not max_running is set; a run
 *              that has had 10 ms gives way to those that have not begun.
 *   Telling    The application tame, when it runs: how far a call is (tame:async/3), the rate of each
 *              row (tame:calibration/0), and, once, a unit of more than 2 ms, which it logs.
 *   Halt       On OTP 26 and newer a halting VM waits for calls in the library to end their step.
 *   Upgrade    A module loaded anew gets a pool, rates and a resource type of its own; jobs in
 *              flight end in the old one, whose code the VM keeps until the last of them has.
 *              Contexts: TAME_UPGRADE_KEEPS, or the upgrade is refused while one lives.
 *
 *   It does not interrupt a step, cut init and result, or catch a crash: that ends the VM, everywhere.
 *
 *
 * 7  THREADS
 *
 *               auto, inline, yielding   dirty_cpu, dirty_io   yielding_dirty   thread, pool
 *     init      caller's scheduler       dirty scheduler       caller's         caller's
 *     step      caller's scheduler (*)   dirty scheduler       dirty CPU        own thread
 *     (outputs are put together where the last step was)
 *     build, result   caller's           dirty scheduler       dirty CPU        caller's
 *     cleanup   as result; of a call that ended early: any thread
 *     (*) of auto: where it has moved to, from then on
 *
 *   Own threads, and a dirty scheduler during a long job, give way to a thread that wakes (Linux 6.12
 *   and newer); they still get their share of the core.
 *
 *   Two calls run at the same time; two steps of one may run on two threads, one after the other: no
 *   thread-local variables across steps. On an own thread call->argv is NULL, and call->env is for
 *   the term of tame_fail or tame_emit (docs/reference/threads.md).
 *
 *
 * 8  WHO OWNS WHAT
 *
 *   state               the library. Yours is what you hang on it: free it in cleanup.
 *   struct tame_input   the library keeps the binary alive until cleanup. Do not write to it.
 *   struct tame_output  the state; free it in cleanup with tame_output_free. After
 *                       tame_output_term the term owns the bytes, and the output has none.
 *   struct tame_call    the library; valid during the call of the function.
 *   a resource          who made it, until tame_resource_term; then its terms, a job that claimed
 *                       it, and who keeps it (tame_resource_keep), until each lets go of it.
 *
 *
 * 9  ERRORS, as they are raised in the name of your Erlang function
 *
 *   badarg                 from tame_badarg; the shell prints the argument's number and your
 *                          sentence
 *   any reason             from tame_fail; enomem: from tame_enomem
 *   {tame, busy}           max_waiting calls wait already
 *   {tame, deadline}       the deadline has passed
 *   {tame, system_limit}   no thread could be made, or TAME_MAX_THREADS calls have one
 *   {tame, _}              a mistake in your C; the reference lists them
 *
 *   What result raises is raised as it is. A row that could not work fails to load, and standard error
 *   says why; a module without '$tame'/3, which -tame writes, as well. A row that appears twice does
 *   not compile.
 *
 *
 * 10  CONSTANTS, and the member of struct tame_job that sets another value for a job
 *
 *   TAME_SLICE_US         100     slice_us
 *   TAME_DIRTY_SLICE_US   5000    dirty_slice_us
 *   TAME_MAX_WAITING      10000   max_waiting
 *   TAME_MAX_STACK_KIB    65536   -; stack_kib is the VM's default, 8 MiB as a rule
 *   TAME_MAX_THREADS      1024    -; max_running
 *   TAME_CLOCK_CHECK_NS   10000   -
 *   TAME_MAX_ARGS         8       -
 *   TAME_MAX_INPUTS       8       -
 *   TAME_MAX_OUTPUTS      8       -
 *   TAME_MAX_ROOTS        4       -
 *   TAME_VERSION          the version of tame, a string
 *
 *   TAME_MAX_THREADS may be defined before the #include; nothing has to be. Names with `impl` in them are private.
 *
 *
 * 11  TESTING A STEP WITHOUT A VM
 *
 *   A step without terms is plain C on plain data. Put state and step into a header that includes
 *   tame/input.h and tame/output.h, fill the state by hand (in.data and in.size are all that a step
 *   sees of a binary) and call the step with NULL for the call and 1, 2, 3 ... units: every cut must
 *   give the same answer. See labs/c_src/natives/exor/exor.h and test/c/exor_test.c. */
#ifndef TAME_H
#define TAME_H

#include <stdint.h>

#if UINTPTR_MAX < UINT64_MAX
#error "tame needs a 64-bit system: a run is counted and timed by words of 64 bits"
#endif

#define TAME_VERSION "0.1.0"

#include "tame/nif.h"

#endif
