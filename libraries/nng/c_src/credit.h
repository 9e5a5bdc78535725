/* credit.h - how many messages the owner still wants: {active, true | once | N}. Atomic, all of
 * it. */
#ifndef TAME_NNG_CREDIT_H
#define TAME_NNG_CREDIT_H

#include <stdint.h>

struct tn_credit {
    int left; /* messages that may still be sent; TN_PASSIVE, or TN_ALWAYS */
    int once; /* it is that of {active, once}: no `passive` at its end */
};

#define TN_PASSIVE 0
#define TN_ALWAYS (-1)

enum tn_credit_kind { TN_CREDIT_TRUE, TN_CREDIT_ONCE, TN_CREDIT_MORE };

static inline int tn_credit_has(const struct tn_credit *credit)
{
    return __atomic_load_n(&credit->left, __ATOMIC_SEQ_CST) != TN_PASSIVE;
}

/* Takes one. Whether there was any; and whether it was the last of a number that was given, which
 * the owner is told. */
static inline int tn_credit_take(struct tn_credit *credit, int *last)
{
    const int once = __atomic_load_n(&credit->once, __ATOMIC_ACQUIRE);
    int left = __atomic_load_n(&credit->left, __ATOMIC_SEQ_CST);

    while (left > 0)
        if (__atomic_compare_exchange_n(&credit->left, &left, left - 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            *last = left == 1 && !once;
            return 1;
        }
    return left == TN_ALWAYS;
}

/* Gives more, or less than none when `more` is negative. Returns 0 when the sum is too large;
 * *passive is whether the owner is told that it has none. */
static inline int tn_credit_give(struct tn_credit *credit, enum tn_credit_kind kind, int more,
                                 int *passive)
{
    int before = __atomic_load_n(&credit->left, __ATOMIC_ACQUIRE), sum;

    *passive = 0;
    if (kind != TN_CREDIT_MORE) {
        __atomic_store_n(&credit->once, kind == TN_CREDIT_ONCE, __ATOMIC_RELEASE);
        __atomic_store_n(&credit->left, kind == TN_CREDIT_ONCE ? 1 : TN_ALWAYS, __ATOMIC_RELEASE);
        return 1;
    }
    if (more > INT16_MAX || more < INT16_MIN)
        return 0;
    do {
        sum = (before == TN_ALWAYS ? 0 : before) + more;
        if (sum > INT16_MAX)
            return 0;
    } while (!__atomic_compare_exchange_n(&credit->left, &before, sum < 0 ? 0 : sum, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    __atomic_store_n(&credit->once, 0, __ATOMIC_RELEASE);
    *passive = sum <= 0;
    return 1;
}

/* Takes all away. Whether there was any. */
static inline int tn_credit_end(struct tn_credit *credit)
{
    return __atomic_exchange_n(&credit->left, TN_PASSIVE, __ATOMIC_SEQ_CST) != TN_PASSIVE;
}

#endif
