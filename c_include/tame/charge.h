/* tame/charge.h - reductions for the time that native code used.
 *
 * Part of tame.h; usable alone, in any NIF on a normal scheduler. 1 ms is 4000 reductions, a whole
 * timeslice (CONTEXT_REDS of ERTS); enif_consume_timeslice takes whole per cents of it, which are
 * 10 us each. What is left of a per cent stays owed by the thread and is paid by the next call on
 * it: a loop of short calls is charged in full. */
#ifndef TAME_CHARGE_H
#define TAME_CHARGE_H

#include <erl_nif.h>
#include <stdint.h>

#define TAME_IMPL_PERCENT_NS 10000

/* Less than one per cent. */
static __thread uint64_t tame_impl_owed_ns;

/* Charges `used_ns` to the calling process. Returns how much of it, in ns, did not fit into its
 * timeslice any more: 0 when all is paid, and then the process may go on. Paid per cent by per
 * cent (3 ns each), because of a payment larger than what is left of the timeslice
 * enif_consume_timeslice would drop the rest without a word. */
static inline uint64_t tame_charge(ErlNifEnv *env, uint64_t used_ns)
{
    uint64_t owed_ns = tame_impl_owed_ns + used_ns;

    while (owed_ns >= TAME_IMPL_PERCENT_NS) {
        owed_ns -= TAME_IMPL_PERCENT_NS;
        if (enif_consume_timeslice(env, 1)) {
            tame_impl_owed_ns = owed_ns % TAME_IMPL_PERCENT_NS;
            return owed_ns - tame_impl_owed_ns;
        }
    }
    tame_impl_owed_ns = owed_ns;
    return 0;
}

#endif
