/* bare_nif.c - the floor of tame_tcp: a NIF that only calls send, recv and enif_select. No owner, no turns, no deadlines, one
 * process for each socket; what is wrong raises badarg. */
#include <erl_nif.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As in tame_tcp (receiving.h). */
#define SMALL 8192

struct bare {
    int number;
    ErlNifBinary block; /* of a receive that has waited; ours while `size` is not 0 */
    size_t size, have;
};

static ErlNifResourceType *bare_type;
static ERL_NIF_TERM atom_ok, atom_wait, atom_bare;

static void bare_destroy(ErlNifEnv *env, void *object)
{
    struct bare *bare = object;

    (void)env;
    if (bare->size > 0)
        enif_release_binary(&bare->block);
}

static void bare_stop(ErlNifEnv *env, void *object, ErlNifEvent number, int is_direct_call)
{
    (void)env;
    (void)object;
    (void)is_direct_call;
    (void)close(number);
}

static struct bare *bare_get(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *object;

    return enif_get_resource(env, term, bare_type, &object) ? object : NULL;
}

/* (Port, Congestion) -> Socket: connected to this machine. */
static ERL_NIF_TERM bare_connect(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ErlNifBinary congestion;
    const int yes = 1;
    struct bare *bare;
    ERL_NIF_TERM term;
    unsigned port;
    int number;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &port) || !enif_inspect_binary(env, argv[1], &congestion))
        return enif_make_badarg(env);
    address.sin_port = htons((uint16_t)port);
    number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (number < 0 ||
        setsockopt(number, IPPROTO_TCP, TCP_CONGESTION, congestion.data,
                   (socklen_t)congestion.size) != 0 ||
        setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        connect(number, (struct sockaddr *)&address, sizeof address) != 0 ||
        fcntl(number, F_SETFL, O_NONBLOCK) != 0) {
        if (number >= 0)
            (void)close(number);
        return enif_make_badarg(env);
    }
    bare = enif_alloc_resource(bare_type, sizeof *bare); /* the term's, below */
    memset(bare, 0, sizeof *bare);
    bare->number = number;
    term = enif_make_resource(env, bare);
    enif_release_resource(bare);
    return term;
}

/* {bare, Ref} comes when it is ready. */
static ERL_NIF_TERM bare_wait(ErlNifEnv *env, struct bare *bare, int is_read, ERL_NIF_TERM ref)
{
    const ERL_NIF_TERM message = enif_make_tuple2(env, atom_bare, ref);
    const int armed = is_read ? enif_select_read(env, bare->number, bare, NULL, message, NULL)
                              : enif_select_write(env, bare->number, bare, NULL, message, NULL);

    return armed >= 0 ? atom_wait : enif_make_badarg(env);
}

/* (Socket, Binary, Ref) -> ok | wait | {wait, Sent} */
static ERL_NIF_TERM bare_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct bare *bare = bare_get(env, argv[0]);
    ErlNifBinary bytes;
    ssize_t n;

    (void)argc;
    if (bare == NULL || !enif_inspect_binary(env, argv[1], &bytes))
        return enif_make_badarg(env);
    n = send(bare->number, bytes.data, bytes.size, MSG_NOSIGNAL);
    if (n == (ssize_t)bytes.size)
        return atom_ok;
    if (n >= 0)
        return enif_make_tuple2(env, bare_wait(env, bare, 0, argv[2]), enif_make_uint64(env, n));
    return errno == EAGAIN ? bare_wait(env, bare, 0, argv[2]) : enif_make_badarg(env);
}

/* (Socket, Size, Ref) -> Binary | wait */
static ERL_NIF_TERM bare_recv(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct bare *bare = bare_get(env, argv[0]);
    unsigned char small[SMALL];
    ErlNifUInt64 size;
    ERL_NIF_TERM term;
    ssize_t n;

    (void)argc;
    if (bare == NULL || !enif_get_uint64(env, argv[1], &size) || size == 0)
        return enif_make_badarg(env);
    if (bare->size == 0 && size <= SMALL) {
        n = recv(bare->number, small, size, 0);
        if (n == (ssize_t)size) {
            memcpy(enif_make_new_binary(env, size, &term), small, size);
            return term;
        }
        if (n < 0 && errno == EAGAIN)
            return bare_wait(env, bare, 1, argv[2]);
        return enif_make_badarg(env); /* small messages come whole, or not at all */
    }
    if (bare->size == 0) {
        if (!enif_alloc_binary(size, &bare->block))
            return enif_make_badarg(env);
        bare->size = size;
        bare->have = 0;
    }
    while (bare->have < bare->size) {
        n = recv(bare->number, bare->block.data + bare->have, bare->size - bare->have, 0);
        if (n < 0 && errno == EAGAIN)
            return bare_wait(env, bare, 1, argv[2]);
        if (n <= 0)
            return enif_make_badarg(env);
        bare->have += (size_t)n;
    }
    bare->size = 0;
    return enif_make_binary(env, &bare->block);
}

static ERL_NIF_TERM bare_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct bare *bare = bare_get(env, argv[0]);

    (void)argc;
    if (bare == NULL ||
        enif_select(env, bare->number, ERL_NIF_SELECT_STOP, bare, NULL, atom_ok) < 0)
        return enif_make_badarg(env);
    return atom_ok;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    const ErlNifResourceTypeInit callbacks = {.dtor = bare_destroy, .stop = bare_stop};

    (void)priv_data;
    (void)load_info;
    atom_ok = enif_make_atom(env, "ok");
    atom_wait = enif_make_atom(env, "wait");
    atom_bare = enif_make_atom(env, "bare");
    bare_type = enif_open_resource_type_x(env, "bare", &callbacks, ERL_NIF_RT_CREATE, NULL);
    return bare_type == NULL;
}

static ErlNifFunc functions[] = {{"connect", 2, bare_connect, 0},
                                 {"send", 3, bare_send, 0},
                                 {"recv", 3, bare_recv, 0},
                                 {"close", 1, bare_close, 0}};

ERL_NIF_INIT(Elixir.Tame.Tcp.Bench.Bare, functions, load, NULL, NULL, NULL)
