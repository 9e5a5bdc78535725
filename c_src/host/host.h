/* The one state of the program, and the small things that every part needs.
 *
 * The API has functions without an environment (enif_alloc_binary, enif_release_resource ...), so
 * the state is one variable, named here and defined in main.c; nothing else is static.
 */
#ifndef TAME_HOST_H
#define TAME_HOST_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include "env.h"
#include "term.h"

#define ATOM_HEADS_LEN 65536
#define ATOM_BLOCK_LEN 4096
#define ATOM_BLOCKS_LEN 4096

struct atom_table {
    pthread_mutex_t lock; /* for adding */
    _Atomic(struct atom *) heads[ATOM_HEADS_LEN];
    struct atom **blocks[ATOM_BLOCKS_LEN];
    size_t len;
};

/* A name and creation that our node has, or had before distribution was started or stopped. */
struct node_name {
    struct node_name *next;
    struct atom *name;
    uint32_t creation;
};

struct library {
    void *handle;
    ErlNifEntry *entry;    /* NULL: none is loaded */
    size_t function_bytes; /* from one ErlNifFunc to the next: shorter before NIF version 2.7 */
    void *priv_data;
    int loading; /* load runs: resource types may be opened */
    struct resource_type *types;
    int wants_caller; /* it asks who calls (enif_self): see call.h */
    int sends;        /* it may send messages */
};

struct lease_table {
    pthread_mutex_t lock;
    struct lease *free;               /* not in use yet */
    struct lease **by_words, **by_id; /* those in use */
    size_t used_len, used_max;
};

/* What workers do: calls, and what must not run in the thread that reads the control port. */
struct job {
    struct job *next;
    void (*run)(struct job *job); /* frees it */
};

struct job_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct job *first, **last;
    int idle; /* workers that wait */
};

struct query_table {
    pthread_mutex_t lock;
    struct query *first;
    uint64_t last_id;
};

struct call_table {
    pthread_mutex_t lock;
    struct call *first;
};

struct monitor_table {
    pthread_mutex_t lock;
    struct monitor *first;
    uint64_t last_id;
};

#define TSD_KEYS_MAX 1024

struct thread_table {
    pthread_mutex_t lock;
    struct {
        char *name;   /* NULL: free */
        unsigned use; /* counts up when the key is made anew, so that old values are not seen */
    } keys[TSD_KEYS_MAX];
};

struct control {
    int in, out; /* -1: there is none (a probe) */
    pthread_mutex_t write_lock;
};

/* See crash.h. */
struct crash {
    struct crash_record *record; /* NULL: nobody reads it (a probe) */
    int pid;                     /* whose end it tells of: not of a child that the library forked */
    _Atomic int thread;          /* the one that writes it; 0: none */
    pthread_key_t stack;         /* a thread's own stack for signals */
};

struct host {
    const char *program;
    int otp_release;
    char otp_release_text[16], erts_text[32];
    int schedulers, dirty_cpu_schedulers, dirty_io_schedulers, async_threads;
    int64_t time_offset_ns, monotonic_offset_ns;
    int workers;

    struct atom_table atoms;
    _Atomic(struct node_name *) node;        /* newest first */
    _Atomic(struct node_name *) other_nodes; /* that the VM named and are not ours */
    struct library library;
    struct lease_table leases;
    struct job_queue jobs;
    struct query_table queries;
    struct call_table calls;
    struct monitor_table monitors;
    struct control control;
    struct thread_table threads;
    _Atomic(struct ring_host *) ring; /* NULL: there is none yet; then for ever */
    _Atomic int ring_workers;
    struct crash crash;
    _Atomic int64_t last_now_us; /* enif_now_time never gives the same twice */
    _Atomic uint64_t last_call, last_env;
    _Atomic uint64_t sent;      /* messages written to the control port, by whatever thread */
    _Atomic uint64_t delivered; /* of those, how many the VM is known to have passed on */
};

extern struct host host;

/* What the API must know of the thread it runs on. */
struct host_thread {
    int type;                      /* ERL_NIF_THR_... */
    const ErlNifFunc *function;    /* that the VM called and that runs now; NULL: none */
    struct env_chunk *spare_chunk; /* the first chunk of the last call, for the next one */
    int in_call;
    struct job *after_call;  /* destructors of what the running call let go of */
    struct nif_thread *self; /* of enif_thread_create, or made when it is asked for */
    struct {
        void *data;
        unsigned use;
    } * tsd; /* TSD_KEYS_MAX of them, or NULL */
};

extern _Thread_local struct host_thread host_thread;

void host_init(void);

/* Ends the program at once, with a line on standard error and status 70. */
__attribute__((noreturn, format(printf, 1, 2))) void host_die(const char *format, ...);

/* What our node is called: it may be renamed while we run. */
struct atom *host_node_atom(void);
uint32_t host_creation(void);
void host_set_node(const unsigned char *name, size_t size, uint32_t creation);
/* ask: where it is none of ours, the VM is asked whether that is new. */
int host_is_this_node(const unsigned char *name, size_t size, uint32_t creation, int ask);

/* What the VM says of itself when it has a library loaded; README.md lists the keys. */
void host_apply_settings(ErlNifEnv *env, term settings);

#endif
