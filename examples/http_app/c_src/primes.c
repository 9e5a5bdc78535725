/* How many primes are below a number: trial division, which needs no memory and cannot be fooled. A
 * unit is a number that is tried. */
#include <tame.h>

/* As many at once as leave a core to the server, on two; a few more wait, and the next is refused. */
#define MAX_RUNNING 1
#define MAX_WAITING 8

struct primes {
    uint64_t next, below, found;
};

static int is_prime(uint64_t n)
{
    if (n < 4)
        return n > 1;
    if (n % 2 == 0)
        return 0;
    for (uint64_t d = 3; d * d <= n; d += 2)
        if (n % d == 0)
            return 0;
    return 1;
}

static enum tame_status init(struct tame_call *call, void *state)
{
    struct primes *primes = state;
    ErlNifUInt64 below;

    if (!enif_get_uint64(call->env, call->argv[0], &below) || below > UINT32_MAX)
        return tame_badarg(call, 1, "must be a number from 0 to 4294967295");
    primes->below = below;
    return tame_ok(call, below);
}

static enum tame_status step(struct tame_call *call, void *state, size_t units)
{
    struct primes *primes = state;
    const uint64_t left = primes->below - primes->next;
    const uint64_t end = primes->next + (units < left ? units : left);

    (void)call;
    for (; primes->next < end; primes->next++)
        primes->found += is_prime(primes->next);
    return primes->next == primes->below ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM result(struct tame_call *call, void *state)
{
    return enif_make_uint64(call->env, ((struct primes *)state)->found);
}

static const struct tame_job primes = {.state_size = sizeof(struct primes),
                                       .max_running = MAX_RUNNING,
                                       .max_waiting = MAX_WAITING,
                                       .init = init,
                                       .step = step,
                                       .result = result};

#define FUNCTIONS(JOB, NIF) JOB(below_nif, 1, primes, TAME_POOL)
TAME_NIF_INIT(Elixir.HttpApp.Primes, FUNCTIONS)
