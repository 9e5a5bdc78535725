/* Leases, see lease.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/die.h"
#include "port/ask.h"
#include "term/lease.h"

/* Ids that are owed to the VM, in one list of leases. */
#define OWED_TOGETHER 1000

struct lease {
    struct lease *next, *id_next;
    uint64_t id;
    uint32_t words[REF_WORDS_MAX];
    uint32_t words_len;
    int is_given; /* has been in the list of leases of something that went out, or is owed */
    int is_shown; /* the library may have kept it as bytes, so it never names another resource */
    struct resource *resource; /* counted when it is given; NULL: free */
};

static struct {
    pthread_mutex_t lock;
    struct lease *free;               /* not in use yet */
    struct lease **by_words, **by_id; /* those in use */
    size_t used_len, used_max;
    _Atomic size_t owed_len;
    uint64_t *owed; /* ids that should have been in a list of leases, and were in none */
    size_t owed_max;
} leases = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
    return &leases.by_words[slot_of(words, len) & (leases.used_max - 1)];
}

static struct lease **id_chain_of(uint64_t id)
{
    return &leases.by_id[id & (leases.used_max - 1)];
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
    struct lease **old = leases.by_id;
    size_t old_max = leases.used_max;

    if (leases.used_len < old_max)
        return;
    leases.used_max = old_max == 0 ? 64 : 2 * old_max;
    free(leases.by_words);
    leases.by_words = host_calloc(leases.used_max * sizeof *leases.by_words);
    leases.by_id = host_calloc(leases.used_max * sizeof *leases.by_id);
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
    pthread_mutex_lock(&leases.lock);
    lease->next = leases.free;
    leases.free = lease;
    pthread_mutex_unlock(&leases.lock);
}

/* With the table locked; unlocks it while it asks the VM for more. */
static struct lease *take_free(void)
{
    while (leases.free == NULL) {
        pthread_mutex_unlock(&leases.lock);
        int answered = ask_word("leases");
        pthread_mutex_lock(&leases.lock);
        if (!answered && leases.free == NULL)
            host_die("the VM lends no references for resources");
    }
    struct lease *lease = leases.free;
    leases.free = lease->next;
    return lease;
}

static void assign(struct resource *resource)
{
    struct lease *lease = take_free();

    if (resource->lease != NULL) { /* another thread was faster */
        lease->next = leases.free;
        leases.free = lease;
        return;
    }
    grow();
    lease->resource = resource;
    insert(lease);
    leases.used_len++;
    resource->lease = lease;
}

struct lease_use lease_use(struct resource *resource, enum lease_for purpose)
{
    struct lease_use use = {0};

    pthread_mutex_lock(&leases.lock);
    while (resource->lease == NULL)
        assign(resource);
    struct lease *lease = resource->lease;
    use.id = lease->id;
    use.words_len = lease->words_len;
    memcpy(use.words, lease->words, sizeof use.words);
    use.first = purpose == LEASE_GIVEN && !lease->is_given;
    if (use.first) {
        lease->is_given = 1;
        shared_keep(&resource->shared);
    }
    lease->is_shown |= purpose == LEASE_SHOWN;
    pthread_mutex_unlock(&leases.lock);
    return use;
}

/* The resource that a reference names, counted once more for the caller; NULL: none. */
static struct resource *find(const uint32_t *words, size_t len)
{
    struct resource *resource = NULL;

    pthread_mutex_lock(&leases.lock);
    if (leases.used_len > 0) {
        struct lease *lease = *chain_of(words, len);
        while (lease != NULL &&
               (lease->words_len != len || memcmp(lease->words, words, len * sizeof *words) != 0))
            lease = lease->next;
        /* One that is not given does not keep it: it may be on its way out. */
        if (lease != NULL && shared_keep_live(&lease->resource->shared))
            resource = lease->resource;
    }
    pthread_mutex_unlock(&leases.lock);
    return resource;
}

/* Takes a lease out of both tables. NULL: there is none of this id. */
static struct lease *remove_used(uint64_t id)
{
    if (leases.used_len == 0)
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
    leases.used_len--;
    return lease;
}

void lease_gone(uint64_t id)
{
    struct resource *resource = NULL;

    pthread_mutex_lock(&leases.lock);
    struct lease *lease = remove_used(id);
    if (lease != NULL) {
        resource = lease->resource;
        if (resource->lease == lease)
            resource->lease = NULL;
        free(lease);
    }
    pthread_mutex_unlock(&leases.lock);
    if (resource != NULL)
        shared_drop(&resource->shared);
}

void lease_forget(struct resource *resource, uint64_t id)
{
    pthread_mutex_lock(&leases.lock);
    if (resource->lease != NULL && resource->lease->id == id)
        resource->lease = NULL;
    pthread_mutex_unlock(&leases.lock);
}

/* With the table locked. */
static void owe(uint64_t id)
{
    if (leases.owed_len == leases.owed_max) {
        leases.owed_max = leases.owed_max == 0 ? 64 : 2 * leases.owed_max;
        leases.owed = host_realloc(leases.owed, leases.owed_max * sizeof *leases.owed);
    }
    leases.owed[leases.owed_len++] = id;
}

void lease_resource_ends(struct resource *resource)
{
    struct lease *lease = resource->lease;

    if (lease == NULL)
        return;
    pthread_mutex_lock(&leases.lock);
    (void)remove_used(lease->id);
    if (lease->is_shown) {
        owe(lease->id);
        free(lease);
    } else {
        lease->resource = NULL;
        lease->next = leases.free;
        leases.free = lease;
    }
    pthread_mutex_unlock(&leases.lock);
}

void lease_owe(const struct work *ids)
{
    const uint64_t *items = ids->items;

    pthread_mutex_lock(&leases.lock);
    for (size_t i = 0; i < ids->len; i++)
        owe(items[i]);
    pthread_mutex_unlock(&leases.lock);
}

void lease_take_owed(struct work *ids)
{
    if (leases.owed_len == 0)
        return;
    pthread_mutex_lock(&leases.lock);
    while (leases.owed_len > 0 && ids->len < OWED_TOGETHER)
        *(uint64_t *)work_push(ids) = leases.owed[--leases.owed_len];
    pthread_mutex_unlock(&leases.lock);
}

/* ---- references ----------------------------------------------------------------------- */

term lease_term_or_ref(ErlNifEnv *env, const uint32_t *words, size_t len)
{
    struct resource *resource = find(words, len);

    if (resource == NULL)
        return term_ref(env, words, len);
    term made = resource_term(env, resource);
    shared_drop(&resource->shared);
    if (env->call_number != 0)
        resource->seen_in = env->call_number;
    return made;
}

void lease_ref_words(term t, struct box_ref *ref)
{
    if (is_kind(t, BOX_REF)) {
        *ref = *(struct box_ref *)box_of(t);
    } else {
        struct lease_use use = lease_use(((struct box_resource *)box_of(t))->resource, LEASE_NAMED);
        ref->len = use.words_len;
        memcpy(ref->words, use.words, sizeof ref->words);
    }
}
