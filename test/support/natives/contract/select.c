/* Waiting for descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

/* A descriptor as a resource. The slot keeps it until select_let_go. */
struct descriptor {
    int slot, fd, stops, direct;
};

static ErlNifResourceType *descriptor_type;
static struct descriptor *slots[8192];
static int slots_len, destructors;

static void close_descriptor(struct descriptor *of)
{
    if (of->fd >= 0)
        close(of->fd);
    of->fd = -1;
}

static void stopped(ErlNifEnv *env, void *object, ErlNifEvent event, int is_direct_call)
{
    struct descriptor *of = object;

    (void)env;
    of->stops++;
    of->direct += is_direct_call;
    if (event == of->fd)
        close_descriptor(of);
}

static void destroyed(ErlNifEnv *env, void *object)
{
    (void)env;
    close_descriptor(object);
    __atomic_add_fetch(&destructors, 1, __ATOMIC_SEQ_CST);
}

int load_select(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {.dtor = destroyed, .stop = stopped};

    descriptor_type = enif_open_resource_type_x(env, "descriptor", &init, ERL_NIF_RT_CREATE, NULL);
    return descriptor_type == NULL;
}

static term open_slot(ErlNifEnv *env, int fd)
{
    struct descriptor *of = enif_alloc_resource(descriptor_type, sizeof *of); /* the slot's */

    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    *of = (struct descriptor){.slot = slots_len, .fd = fd};
    slots[slots_len] = of;
    return enif_make_int(env, slots_len++);
}

/* The slot that the term, or its first element, names. */
static struct descriptor *slot_of(ErlNifEnv *env, term t)
{
    const term *in = &t;
    int arity, slot;

    (void)enif_get_tuple(env, t, &arity, &in);
    return enif_get_int(env, in[0], &slot) && slot >= 0 && slot < slots_len ? slots[slot] : NULL;
}

/* IN: pipe (its ends to read and to write), sockets, or a path. The slots. */
CASE(select_open)
{
    char kind[8];
    ErlNifBinary path;
    int ends[2];

    if (enif_inspect_binary(env, IN, &path)) {
        char name[256] = {0};
        memcpy(name, path.data, path.size < 255 ? path.size : 255);
        /* The VM never forgets which numbers were those of files that are always ready. */
        ends[1] = open(name, O_RDONLY);
        ends[0] = fcntl(ends[1], F_DUPFD, 800);
        close(ends[1]);
        return ends[0] < 0 ? enif_make_badarg(env) : enif_make_tuple1(env, open_slot(env, ends[0]));
    }
    if (!enif_get_atom(env, IN, kind, sizeof kind, ERL_NIF_LATIN1) ||
        (strcmp(kind, "pipe") == 0 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) != 0)
        return enif_make_badarg(env);
    term first = open_slot(env, ends[0]);
    return enif_make_tuple2(env, first, open_slot(env, ends[1]));
}

/* IN: {Slot, Flags, Pid | null, Ref or Message, whether in an environment of its own} */
CASE(select)
{
    struct descriptor *of = slot_of(env, IN);
    ErlNifEnv *own = NULL;
    ErlNifPid pid;
    const term *in;
    int arity, flags, own_env, result;

    if (of == NULL || !enif_get_tuple(env, IN, &arity, &in) || arity != 5 ||
        !enif_get_int(env, in[1], &flags) || !enif_get_int(env, in[4], &own_env))
        return enif_make_badarg(env);
    term message = in[3];
    if (own_env) {
        own = enif_alloc_env();
        message = enif_make_copy(own, message);
    }
    result = enif_select_x(env, of->fd, (enum ErlNifSelectFlags)flags, of,
                           enif_get_local_pid(env, in[2], &pid) ? &pid : NULL, message, own);
    if (own != NULL)
        enif_free_env(own);
    return enif_make_int(env, result);
}

/* A number that is no descriptor. IN: {Slot, Number} */
CASE(select_number)
{
    struct descriptor *of = slot_of(env, IN);
    const term *in;
    int arity, fd;

    if (of == NULL || !enif_get_tuple(env, IN, &arity, &in) || !enif_get_int(env, in[1], &fd))
        return enif_make_badarg(env);
    return enif_make_int(
        env, enif_select(env, fd, ERL_NIF_SELECT_READ, of, NULL, enif_make_atom(env, "undefined")));
}

/* A resource of its own for the descriptor of another. IN: Slot. The new slot. */
CASE(select_again)
{
    struct descriptor *of = slot_of(env, IN);

    return of == NULL ? enif_make_badarg(env) : open_slot(env, of->fd);
}

/* IN: {Slot, Bytes}. How many were written, or 0. */
CASE(select_put)
{
    struct descriptor *of = slot_of(env, IN);
    ErlNifBinary data;
    const term *in;
    int arity;

    if (of == NULL || !enif_get_tuple(env, IN, &arity, &in) ||
        !enif_inspect_binary(env, in[1], &data))
        return enif_make_badarg(env);
    const ssize_t done = send(of->fd, data.data, data.size, MSG_NOSIGNAL);
    const ssize_t wrote =
        done >= 0 || errno != ENOTSOCK ? done : write(of->fd, data.data, data.size);
    return enif_make_int64(env, wrote < 0 ? 0 : wrote);
}

/* IN: Slot. How many bytes there were. */
CASE(select_take)
{
    struct descriptor *of = slot_of(env, IN);
    char taken[4096];
    ssize_t some;
    long all = 0;

    if (of == NULL)
        return enif_make_badarg(env);
    while ((some = read(of->fd, taken, sizeof taken)) > 0)
        all += some;
    return enif_make_long(env, all);
}

/* IN: Slot. Closes it, also while somebody waits for it. */
CASE(select_close)
{
    struct descriptor *of = slot_of(env, IN);

    if (of == NULL)
        return enif_make_badarg(env);
    close_descriptor(of);
    return IN;
}

/* IN: Slot. {Stops, Of them direct, Whether it is closed} */
CASE(select_stops)
{
    struct descriptor *of = slot_of(env, IN);

    return of == NULL ? enif_make_badarg(env)
                      : enif_make_tuple3(env, enif_make_int(env, of->stops),
                                         enif_make_int(env, of->direct), boolean(env, of->fd < 0));
}

/* IN: a resource, as it came in a message. Its slot. */
CASE(select_slot)
{
    void *object;

    return enif_get_resource(env, IN, descriptor_type, &object)
               ? enif_make_int(env, ((struct descriptor *)object)->slot)
               : enif_make_badarg(env);
}

/* IN: Slot. Nobody but what waits keeps it. */
CASE(select_let_go)
{
    struct descriptor *of = slot_of(env, IN);

    if (of == NULL)
        return enif_make_badarg(env);
    slots[of->slot] = NULL;
    enif_release_resource(of);
    return IN;
}

CASE(select_destructors)
{
    return enif_make_int(env, __atomic_load_n(&destructors, __ATOMIC_SEQ_CST));
}
