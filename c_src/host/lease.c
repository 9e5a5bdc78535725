/* Leases, see lease.h. */
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "control.h"
#include "env.h"
#include "host.h"
#include "lease.h"
#include "query.h"
#include "resource.h"

static size_t slot_of(const uint32_t *words, size_t len)
{
    uint64_t hash = len;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 20);
}

/* Where the chain begins that holds a reference, and the one that holds an id. Both tables have a
 * slot for each lease in use, or more. */
static struct lease **chain_of(const uint32_t *words, size_t len)
{
    return &host.leases.by_words[slot_of(words, len) & (host.leases.used_max - 1)];
}

static struct lease **id_chain_of(uint64_t id)
{
    return &host.leases.by_id[id & (host.leases.used_max - 1)];
}

static void insert(struct lease *lease)
{
    struct lease **chain = chain_of(lease->words, lease->words_len);
    struct lease **id_chain = id_chain_of(lease->id);

    lease->next = *chain;
    *chain = lease;
    lease->id_next = *id_chain;
    *id_chain = lease;
}

static void grow(void)
{
    struct lease_table *table = &host.leases;
    struct lease **old = table->by_id;
    size_t old_max = table->used_max;

    if (table->used_len < old_max)
        return;
    table->used_max = old_max == 0 ? 64 : 2 * old_max;
    free(table->by_words);
    table->by_words = host_calloc(table->used_max * sizeof *table->by_words);
    table->by_id = host_calloc(table->used_max * sizeof *table->by_id);
    for (size_t i = 0; i < old_max; i++) {
        while (old[i] != NULL) {
            struct lease *lease = old[i];
            old[i] = lease->id_next;
            insert(lease);
        }
    }
    free(old);
}

void lease_add(uint64_t id, const uint32_t *words, size_t len)
{
    struct lease *lease = host_malloc(sizeof *lease);

    *lease = (struct lease){.id = id, .words_len = (uint32_t)len};
    memcpy(lease->words, words, len * sizeof *words);
    pthread_mutex_lock(&host.leases.lock);
    lease->next = host.leases.free;
    host.leases.free = lease;
    pthread_mutex_unlock(&host.leases.lock);
}

/* With the table locked; unlocks it while it asks the VM for more. */
static struct lease *take_free(void)
{
    while (host.leases.free == NULL) {
        pthread_mutex_unlock(&host.leases.lock);
        int answered = query_is_true(atom_make((const unsigned char *)"leases", 6, 1));
        pthread_mutex_lock(&host.leases.lock);
        if (!answered && host.leases.free == NULL)
            host_die("the VM lends no references for resources");
    }
    struct lease *lease = host.leases.free;
    host.leases.free = lease->next;
    return lease;
}

static void assign(struct resource *resource)
{
    struct lease *lease = take_free();

    if (resource->lease != NULL) { /* another thread was faster */
        lease->next = host.leases.free;
        host.leases.free = lease;
        return;
    }
    grow();
    lease->resource = resource;
    insert(lease);
    host.leases.used_len++;
    resource->lease = lease;
    shared_keep(&resource->shared);
}

struct lease_use lease_use(struct resource *resource, int announce)
{
    struct lease_use use = {0};

    pthread_mutex_lock(&host.leases.lock);
    while (resource->lease == NULL)
        assign(resource);
    struct lease *lease = resource->lease;
    use.id = lease->id;
    use.words_len = lease->words_len;
    memcpy(use.words, lease->words, sizeof use.words);
    use.first = announce && !lease->announced;
    if (announce)
        lease->announced = 1;
    pthread_mutex_unlock(&host.leases.lock);
    return use;
}

struct resource *lease_find(const uint32_t *words, size_t len)
{
    struct resource *resource = NULL;

    pthread_mutex_lock(&host.leases.lock);
    if (host.leases.used_len > 0) {
        struct lease *lease = *chain_of(words, len);
        while (lease != NULL &&
               (lease->words_len != len || memcmp(lease->words, words, len * sizeof *words) != 0))
            lease = lease->next;
        if (lease != NULL) {
            resource = lease->resource;
            shared_keep(&resource->shared);
        }
    }
    pthread_mutex_unlock(&host.leases.lock);
    return resource;
}

/* Takes a lease out of both tables. NULL: there is none of this id. */
static struct lease *remove_used(uint64_t id)
{
    if (host.leases.used_len == 0)
        return NULL;
    struct lease **at = id_chain_of(id);
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->id_next;
    struct lease *lease = *at;
    if (lease == NULL)
        return NULL;
    *at = lease->id_next;
    for (at = chain_of(lease->words, lease->words_len); *at != lease; at = &(*at)->next) {
    }
    *at = lease->next;
    host.leases.used_len--;
    return lease;
}

void lease_gone(uint64_t id)
{
    struct resource *resource = NULL;

    pthread_mutex_lock(&host.leases.lock);
    struct lease *lease = remove_used(id);
    if (lease != NULL) {
        resource = lease->resource;
        if (resource->lease == lease)
            resource->lease = NULL;
        free(lease);
    }
    pthread_mutex_unlock(&host.leases.lock);
    if (resource != NULL)
        shared_drop(&resource->shared);
}

/* The resource's lease when it must be held for call; else 0. */
static uint64_t lease_to_hold(struct resource *resource, uint64_t call)
{
    uint64_t id = 0;

    if (call != 0 && resource->seen_in == call)
        return 0; /* an argument: its caller keeps it until it has the reply */
    pthread_mutex_lock(&host.leases.lock);
    if (resource->lease != NULL)
        id = resource->lease->id;
    pthread_mutex_unlock(&host.leases.lock);
    return id;
}

static int is_member(term id, term list)
{
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        if (term_identical(cell_of(list)[0], id))
            return 1;
    }
    return 0;
}

/* A lease that the VM has collected names its resource no more. Its entry goes when "gone" comes.
 */
static void forget(struct resource *resource, uint64_t id)
{
    pthread_mutex_lock(&host.leases.lock);
    if (resource->lease != NULL && resource->lease->id == id)
        resource->lease = NULL;
    pthread_mutex_unlock(&host.leases.lock);
}

int lease_hold(struct etf_out *out, uint64_t call_id, uint64_t call)
{
    struct resource **resources = out->resent.items;
    ErlNifEnv env;
    term refs = TERM_NIL, held;
    int all = 1;

    env_init(&env, ENV_INDEPENDENT);
    for (size_t i = 0; i < out->resent.len; i++) {
        uint64_t id = lease_to_hold(resources[i], call);
        if (id != 0)
            refs = term_cons(&env, resource_term(&env, resources[i]), refs);
    }
    if (refs != TERM_NIL) {
        held = query_ask(&env, query_term(&env, "hold", 2, term_unsigned(&env, call_id), refs));
        for (size_t i = 0; i < out->resent.len; i++) {
            uint64_t id = lease_to_hold(resources[i], call);
            if (id == 0)
                continue;
            if (is_member(term_unsigned(&env, id), held)) {
                *(uint64_t *)work_push(&out->leases) = id;
            } else {
                forget(resources[i], id);
                all = 0;
            }
        }
    }
    env_destroy(&env);
    return all;
}
