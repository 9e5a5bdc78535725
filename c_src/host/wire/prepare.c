/* Before a term goes out, see prepare.h. */
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

/* ---- atoms ---------------------------------------------------------------------------- */

static int declare_atoms(struct etf_out *out)
{
    term *atoms = out->atoms.items, names = TERM_NIL;
    ErlNifEnv env;
    int ok;

    env_init(&env, ENV_INDEPENDENT);
    for (size_t i = 0; i < out->atoms.len; i++) {
        struct atom *atom = atom_of(atoms[i]);
        names = term_cons(&env, term_binary(&env, atom->name, atom->size, 0, NULL), names);
    }
    ok = query_ask(&env, query_term(&env, "new_atoms", 1, names)) == ATOM(ok);
    for (size_t i = 0; ok && i < out->atoms.len; i++)
        atom_of(atoms[i])->declared = 1;
    env_destroy(&env);
    return ok;
}

/* ---- leases --------------------------------------------------------------------------- */

static int is_member(term id, term list)
{
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        if (term_identical(cell_of(list)[0], id))
            return 1;
    }
    return 0;
}

/* Asks the VM to hold what out sends again, until it has read the reply of call_id (0: no call);
 * call_number is our number of that call. Returns 1 when all are held; 0: some need a new lease, so
 * that out must be sized anew. */
static int hold_leases(struct etf_out *out, uint64_t call_id, uint64_t call_number)
{
    struct resource **resources = out->resent.items;
    ErlNifEnv env;
    term refs = TERM_NIL, held;
    int all = 1;

    env_init(&env, ENV_INDEPENDENT);
    for (size_t i = 0; i < out->resent.len; i++) {
        uint64_t id = lease_to_hold(resources[i], call_number);
        if (id != 0)
            refs = term_cons(&env, resource_term(&env, resources[i]), refs);
    }
    if (refs != TERM_NIL) {
        held = query_ask(&env, query_term(&env, "hold", 2, term_unsigned(&env, call_id), refs));
        for (size_t i = 0; i < out->resent.len; i++) {
            uint64_t id = lease_to_hold(resources[i], call_number);
            if (id == 0)
                continue;
            if (is_member(term_unsigned(&env, id), held)) {
                *(uint64_t *)work_push(&out->leases) = id;
            } else {
                lease_forget(resources[i], id);
                all = 0;
            }
        }
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
