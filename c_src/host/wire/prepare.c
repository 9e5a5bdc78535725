/* Before a term goes out, see prepare.h. */
#include <stdlib.h>

#include "term/atom.h"
#include "term/lease.h"
#include "term/order.h"
#include "wire/prepare.h"
#include "wire/query.h"

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

/* Asks the VM to hold what out sends again, until it has read the reply of call_id (0: no call);
 * call_number is our number of that call. Returns 1 when all are held; 0: some need a new lease, so
 * that out must be sized anew. */
static int hold_leases(struct etf_out *out, uint64_t call_id, uint64_t call_number)
{
    struct resource **resources;
    ErlNifEnv env;
    struct work held;
    term refs = TERM_NIL;
    int all = 1;

    make_set(&out->resent);
    resources = out->resent.items;

    env_init(&env, ENV_INDEPENDENT);
    for (size_t i = 0; i < out->resent.len; i++) {
        uint64_t id = lease_to_hold(resources[i], call_number);
        if (id != 0)
            refs = term_cons(&env, resource_term(&env, resources[i]), refs);
    }
    if (refs != TERM_NIL) {
        read_ids(query_ask(&env, query_term(&env, "hold", 2, term_unsigned(&env, call_id), refs)),
                 &held);
        for (size_t i = 0; i < out->resent.len; i++) {
            uint64_t id = lease_to_hold(resources[i], call_number);
            if (id == 0)
                continue;
            if (is_member(id, &held)) {
                *(uint64_t *)work_push(&out->leases) = id;
            } else {
                lease_forget(resources[i], id);
                all = 0;
            }
        }
        work_free(&held);
    }
    env_destroy(&env);
    return all;
}

int prepare(term t, const ErlNifEnv *env, struct etf_out *out)
{
    etf_out_init(out);
    etf_size(t, 0, out);
    while (out->resent.len > 0 &&
           !hold_leases(out, env == NULL ? 0 : env->call_id, env == NULL ? 0 : env->call_number)) {
        out->size = out->atoms.len = out->resent.len = 0;
        etf_size(t, 0, out);
    }
    return out->atoms.len == 0 || declare_atoms(out);
}
