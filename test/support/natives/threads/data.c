/* Numbers, lists, tuples, binaries, I/O queues and atoms. */
#include "threads.h"
#include <stdint.h>
#include <string.h>

/* A list, or a tuple's elements, taken apart and made anew as a list. */
OP(list)
{
    ERL_NIF_TERM made = enif_make_list(env, 0), back, head;
    unsigned length;

    if (!enif_get_list_length(env, term, &length))
        return atom(env, "refused");
    while (enif_get_list_cell(env, term, &head, &term))
        made = enif_make_list_cell(env, head, made);
    return enif_make_reverse_list(env, made, &back) ? back : atom(env, "refused");
}

OP(tuple)
{
    const ERL_NIF_TERM *elements;
    int arity;

    return enif_get_tuple(env, term, &arity, &elements)
               ? enif_make_tuple2(env, enif_make_tuple_from_array(env, elements, (unsigned)arity),
                                  enif_make_list_from_array(env, elements, (unsigned)arity))
               : atom(env, "refused");
}

/* The same bytes four times: allocated and grown, new, a part, and a resource's. */
OP(binary)
{
    ErlNifBinary in, grown;
    ERL_NIF_TERM fresh;
    void *object;
    ERL_NIF_TERM of_resource;

    if (!enif_inspect_binary(env, term, &in) || !enif_alloc_binary(in.size / 2, &grown) ||
        !enif_realloc_binary(&grown, in.size))
        return atom(env, "refused");
    memcpy(grown.data, in.data, in.size);
    memcpy(enif_make_new_binary(env, in.size, &fresh), in.data, in.size);
    object = enif_alloc_resource(plain_type, in.size + sizeof(ErlNifPid));
    enif_set_pid_undefined((ErlNifPid *)object); /* nobody is told of its end */
    memcpy((char *)object + sizeof(ErlNifPid), in.data, in.size);
    of_resource =
        enif_make_resource_binary(env, object, (char *)object + sizeof(ErlNifPid), in.size);
    enif_release_resource(object);
    return enif_make_list(env, 4, enif_make_binary(env, &grown), fresh,
                          enif_make_sub_binary(env, fresh, 0, in.size), of_resource);
}

OP(iolist)
{
    ErlNifBinary in;
    ERL_NIF_TERM fresh;

    if (!enif_inspect_iolist_as_binary(env, term, &in))
        return atom(env, "refused");
    memcpy(enif_make_new_binary(env, in.size, &fresh), in.data, in.size);
    return fresh;
}

/* A list of binaries through an I/O queue, and what is left of it after the first byte. */
OP(ioq)
{
    ErlNifIOQueue *queue = enif_ioq_create(ERL_NIF_IOQ_NORMAL); /* destroyed below */
    ErlNifIOVec *vector = NULL;
    ERL_NIF_TERM tail, head = atom(env, "refused");
    size_t size, left = 0;

    /* Owned by the environment. */
    if (enif_inspect_iovec(env, 1000000, term, &tail, &vector) && enif_ioq_enqv(queue, vector, 0) &&
        enif_ioq_deq(queue, 1, &left) && enif_ioq_peek_head(env, queue, &size, &head))
        head = enif_make_tuple2(env, enif_make_uint64(env, left), head);
    enif_ioq_destroy(queue);
    return head;
}

OP(atoms)
{
    char name[256];
    ERL_NIF_TERM existing;
    const int length = enif_get_string(env, term, name, sizeof name, ERL_NIF_LATIN1);

    if (length <= 0)
        return atom(env, "refused");
    return enif_make_existing_atom_len(env, name, (size_t)length - 1, &existing, ERL_NIF_LATIN1)
               ? existing
               : enif_make_atom_len(env, name, (size_t)length - 1);
}

OP(numbers)
{
    return enif_make_list(env, 5, enif_make_uint64(env, UINT64_MAX),
                          enif_make_int64(env, INT64_MIN), enif_make_int(env, -1),
                          enif_make_double(env, 0.5),
                          enif_make_string(env, "text", ERL_NIF_LATIN1));
}
