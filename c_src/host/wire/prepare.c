/* Before a term goes out, see prepare.h. */
#include <stdlib.h>

#include "term/atom.h"
#include "term/lease.h"
#include "term/order.h"
#include "wire/prepare.h"
#include "wire/query.h"
#include "wire/readable.h"

term prepare_lease_list(ErlNifEnv *env, const uint64_t *leases, size_t len)
{
    term list = TERM_NIL;

    while (len-- > 0)
        list = term_cons(env, term_unsigned(env, leases[len]), list);
    return list;
}

/* ---- each once ------------------------------------------------------------------------ */

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

/* Words in order, each once: a term may name the same atom a million times. */
static void make_set(struct work *work)
{
    uint64_t *words = work->items;
    size_t len = 0;

    qsort(words, work->len, sizeof *words, compare);
    for (size_t i = 0; i < work->len; i++) {
        if (len == 0 || words[len - 1] != words[i])
            words[len++] = words[i];
    }
    work->len = len;
}

/* ---- atoms ---------------------------------------------------------------------------- */

/* Names in one query. Between two queries the VM answers others. */
#define ATOMS_TOGETHER 1000

static int declare_some(const term *atoms, size_t len)
{
    term names = TERM_NIL;
    ErlNifEnv env;
    int ok;

    env_init(&env, ENV_INDEPENDENT);
    for (size_t i = 0; i < len; i++) {
        struct atom *atom = atom_of(atoms[i]);
        names = term_cons(&env, term_binary(&env, atom->name, atom->size, 0, NULL), names);
    }
    ok = query_ask(&env, query_term(&env, "new_atoms", 1, names)) == ATOM(ok);
    for (size_t i = 0; ok && i < len; i++)
        atom_of(atoms[i])->declared = 1;
    env_destroy(&env);
    return ok;
}

static int declare_atoms(struct etf_out *out)
{
    const term *atoms;
    int ok = 1;

    if (out->atoms.len == 0)
        return 1;
    make_set(&out->atoms);
    atoms = out->atoms.items;
    for (size_t i = 0; ok && i < out->atoms.len; i += ATOMS_TOGETHER) {
        const size_t left = out->atoms.len - i;

        ok = declare_some(atoms + i, left < ATOMS_TOGETHER ? left : ATOMS_TOGETHER);
    }
    return ok;
}

/* ---- leases --------------------------------------------------------------------------- */

/* The ids in a list that the VM has written, as a set; the caller frees it. */
static void read_ids(term list, struct work *ids)
{
    work_init(ids, sizeof(uint64_t));
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        if (is_small(cell_of(list)[0])) /* they are counted from 1 */
            *(uint64_t *)work_push(ids) = (uint64_t)small_value(cell_of(list)[0]);
    }
    make_set(ids);
}

static int is_member(uint64_t id, const struct work *ids)
{
    return bsearch(&id, ids->items, ids->len, sizeof id, compare) != NULL;
}

/* What is an argument of our call of this number (env.h) its caller keeps until it has the reply. */
static void drop_arguments(struct work *resources, uint64_t call_number)
{
    struct resource **items = resources->items;
    size_t len = 0;

    if (call_number == 0)
        return;
    for (size_t i = 0; i < resources->len; i++) {
        if (items[i]->seen_in != call_number)
            items[len++] = items[i];
    }
    resources->len = len;
}

/* A resource that is to be held by the lease of this id. */
struct holding {
    uint64_t id;
    struct resource *resource;
};

/* References in one query. A frame is bounded, and between two queries the VM answers others. */
#define REFS_TOGETHER 1000

/* Takes some of what is sent again: the references of what has to be asked for, which is put into holdings.
 * What has got a new lease is in the list of leases. */
static term refs_to_hold(ErlNifEnv *env, struct etf_out *out, struct work *holdings)
{
    struct resource **top;
    term refs = TERM_NIL;

    while (holdings->len < REFS_TOGETHER && (top = work_top(&out->resent)) != NULL) {
        struct resource *resource = *top;
        work_pop(&out->resent);
        /* "gone" may have come since it was looked at: then this is a new lease. */
        struct lease_use use = lease_use(resource, LEASE_GIVEN);
        if (use.first) {
            *(uint64_t *)work_push(&out->leases) = use.id;
        } else {
            *(struct holding *)work_push(holdings) = (struct holding){use.id, resource};
            refs = term_cons(env, term_ref(env, use.words, use.words_len), refs);
        }
    }
    return refs;
}

/* Asks the VM to hold what out sends again, until it has read what has the list of leases. What it
 * has collected meanwhile gets a new lease, which has as many words: unless another thread has given
 * it one, then that is asked for. A lease that is in our list, or held, stays the resource's. */
static void hold_leases(struct etf_out *out, uint64_t call_id, uint64_t call_number)
{
    struct work holdings, held;

    make_set(&out->resent);
    drop_arguments(&out->resent, call_number);
    work_init(&holdings, sizeof(struct holding));
    while (out->resent.len > 0) {
        ErlNifEnv env;
        struct holding *holding = NULL;

        env_init(&env, ENV_INDEPENDENT);
        term refs = refs_to_hold(&env, out, &holdings);
        if (refs != TERM_NIL) {
            read_ids(
                query_ask(&env, query_term(&env, "hold", 2, term_unsigned(&env, call_id), refs)),
                &held);
            while ((holding = work_top(&holdings)) != NULL) {
                if (is_member(holding->id, &held)) {
                    *(uint64_t *)work_push(&out->leases) = holding->id;
                } else {
                    lease_forget(holding->resource, holding->id);
                    *(struct resource **)work_push(&out->resent) = holding->resource;
                }
                work_pop(&holdings);
            }
            work_free(&held);
        }
        env_destroy(&env);
    }
    work_free(&holdings);
}

int prepare(term t, const ErlNifEnv *env, size_t most, struct etf_out *out)
{
    int ok;

    etf_out_init(out);
    out->most = most;
    etf_size(t, 0, out);
    if (out->resent.len > 0)
        hold_leases(out, env == NULL ? 0 : env->call_id, env == NULL ? 0 : env->call_number);
    ok = declare_atoms(out);
    lease_take_owed(&out->leases);
    return ok;
}

int prepare_question(term t)
{
    struct etf_out out;

    etf_out_init(&out);
    out.most = READABLE_BYTES;
    etf_size(t, ETF_QUESTION, &out);
    const int ok = declare_atoms(&out);
    etf_out_free(&out);
    return ok;
}
