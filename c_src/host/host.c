/* The program's state, what its node is called, and how it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atom.h"
#include "host.h"
#include "map.h"
#include "query.h"

/* EX_SOFTWARE of sysexits.h: told from what a library's exit() is likely to give. */
#define STATUS_DIED 70

struct host host;
_Thread_local struct host_thread host_thread;

void host_init(void)
{
    pthread_mutex_init(&host.atoms.lock, NULL);
    pthread_mutex_init(&host.leases.lock, NULL);
    pthread_mutex_init(&host.jobs.lock, NULL);
    pthread_cond_init(&host.jobs.filled, NULL);
    host.jobs.last = &host.jobs.first;
    pthread_mutex_init(&host.queries.lock, NULL);
    pthread_mutex_init(&host.calls.lock, NULL);
    pthread_mutex_init(&host.monitors.lock, NULL);
    pthread_mutex_init(&host.control.write_lock, NULL);
    pthread_mutex_init(&host.threads.lock, NULL);
    host.control.in = host.control.out = -1;
    host.schedulers = host.dirty_cpu_schedulers = 1;
    host.dirty_io_schedulers = 10;
    host.async_threads = 1;
    host.otp_release = 25;
    atom_init();
    host_set_node((const unsigned char *)"nonode@nohost", 13, 0);
}

void host_die(const char *format, ...)
{
    va_list args;
    char text[1024];
    int size;

    va_start(args, format);
    size = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    if (size > (int)sizeof text - 2)
        size = (int)sizeof text - 2;
    text[size] = '\n';
    (void)!write(STDERR_FILENO, "tame_host: ", 11);
    (void)!write(STDERR_FILENO, text, (size_t)size + 1);
    _exit(STATUS_DIED);
}

/* ---- the node ------------------------------------------------------------------------- */

struct atom *host_node_atom(void)
{
    return host.node->name;
}

uint32_t host_creation(void)
{
    return host.node->creation;
}

void host_set_node(const unsigned char *name, size_t size, uint32_t creation)
{
    term atom = atom_make(name, size, 1);
    struct node_name *node = host_malloc(sizeof *node);

    if (atom == TERM_NONE)
        host_die("a node's name that is no atom");
    *node = (struct node_name){host.node, atom_of(atom), creation};
    host.node = node; /* the older ones stay: terms that were on their way name them */
}

static int is_among(const struct node_name *node, const unsigned char *name, size_t size,
                    uint32_t creation)
{
    for (; node != NULL; node = node->next) {
        if (node->creation == creation && node->name->size == size &&
            memcmp(node->name->name, name, size) == 0)
            return 1;
    }
    return 0;
}

int host_is_this_node(const unsigned char *name, size_t size, uint32_t creation, int ask)
{
    struct node_name *other;
    term atom;

    if (is_among(host.node, name, size, creation))
        return 1;
    if (!ask || is_among(host.other_nodes, name, size, creation))
        return 0;
    /* Another node, or ours since just now. A new name comes before the answer to any query. */
    (void)query_is_true(atom_make((const unsigned char *)"sync", 4, 1));
    if (is_among(host.node, name, size, creation))
        return 1;
    atom = atom_make(name, size, 1);
    if (atom == TERM_NONE)
        return 0;
    other = host_malloc(sizeof *other); /* stays: asked for once */
    *other = (struct node_name){host.other_nodes, atom_of(atom), creation};
    while (!atomic_compare_exchange_weak(&host.other_nodes, &other->next, other)) {
    }
    return 0;
}

/* ---- what the VM says of itself ------------------------------------------------------- */

static const term *setting(ErlNifEnv *env, term settings, const char *key)
{
    return map_find(env, settings, atom_make((const unsigned char *)key, strlen(key), 1));
}

static void int_setting(ErlNifEnv *env, term settings, const char *key, int *to)
{
    const term *value = setting(env, settings, key);

    if (value != NULL && is_small(*value))
        *to = (int)small_value(*value);
}

static void ns_setting(ErlNifEnv *env, term settings, const char *key, int64_t *to)
{
    const term *value = setting(env, settings, key);
    long ns;

    if (value != NULL && enif_get_long(env, *value, &ns))
        *to = ns;
}

static void text_setting(ErlNifEnv *env, term settings, const char *key, char *to, size_t size)
{
    const term *value = setting(env, settings, key);
    ErlNifBinary text;

    if (value != NULL && enif_inspect_binary(env, *value, &text) && text.size < size) {
        memcpy(to, text.data, text.size);
        to[text.size] = '\0';
    }
}

void host_apply_settings(ErlNifEnv *env, term settings)
{
    text_setting(env, settings, "otp_release", host.otp_release_text, sizeof host.otp_release_text);
    if (host.otp_release_text[0] != '\0')
        host.otp_release = atoi(host.otp_release_text);
    text_setting(env, settings, "erts", host.erts_text, sizeof host.erts_text);
    int_setting(env, settings, "schedulers", &host.schedulers);
    int_setting(env, settings, "dirty_cpu_schedulers", &host.dirty_cpu_schedulers);
    int_setting(env, settings, "dirty_io_schedulers", &host.dirty_io_schedulers);
    int_setting(env, settings, "async_threads", &host.async_threads);
    ns_setting(env, settings, "time_offset_ns", &host.time_offset_ns);
    ns_setting(env, settings, "monotonic_offset_ns", &host.monotonic_offset_ns);
}
