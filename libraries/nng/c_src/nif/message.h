/* nif/message.h - messages of nng's as terms, and terms as messages.
 *
 * A large message that comes is not copied: its bytes are a binary of a resource that has the
 * message. One that goes is copied once, because nng sends only memory of its own.
 *
 * The VM frees a type that has no resource when the code is purged, and a message may become a resource
 * after that: on a thread of nng's, or on a dirty scheduler whose caller was killed. So each handle
 * and each context has one without a message. */
#ifndef TAME_NNG_NIF_MESSAGE_H
#define TAME_NNG_NIF_MESSAGE_H

#include "handle.h"

/* Below this a copy costs less than a resource. */
#define TN_COPY_BELOW 4096

/* Parts of a message that are copied on a scheduler. */
#define TN_SLICE_PARTS 1024

struct tn_message {
    nng_msg *message; /* the resource's, or NULL: it was sent, or there was none */
};

static ErlNifResourceType *tn_messages;

static void tn_message_destroy(ErlNifEnv *env, void *object)
{
    struct tn_message *held = (struct tn_message *)object;

    (void)env;
    if (held->message != NULL)
        nng_msg_free(held->message);
}

static inline int tn_message_load(ErlNifEnv *env)
{
    tn_messages = enif_open_resource_type(
        env, NULL, "tame_nng_message", tn_message_destroy,
        (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER), NULL);
    return tn_messages == NULL;
}

/* Reports the time that copying takes: 0.3 us for each KiB, of a timeslice of 1 ms. */
static inline void tn_charge(ErlNifEnv *env, size_t bytes)
{
    const size_t percent = bytes / 32768;

    if (percent > 0)
        (void)enif_consume_timeslice(env, percent > 100 ? 100 : (int)percent);
}

/* Takes the message, which may be NULL. NULL without memory: the message is the caller's still. */
static inline struct tn_message *tn_message_hold(nng_msg *message)
{
    struct tn_message *held = (struct tn_message *)enif_alloc_resource(tn_messages, sizeof *held);

    if (held != NULL)
        held->message = message;
    return held;
}

/* The bytes of a message, which is ours and taken. */
static inline ERL_NIF_TERM tn_message_bytes(ErlNifEnv *env, nng_msg *message)
{
    const size_t size = nng_msg_len(message);
    struct tn_message *held = size < TN_COPY_BELOW ? NULL : tn_message_hold(message);
    ERL_NIF_TERM term;

    if (held != NULL) {
        term = enif_make_resource_binary(env, held, nng_msg_body(message), size);
        enif_release_resource(held);
        return term;
    }
    if (size > 0)
        memcpy(enif_make_new_binary(env, size, &term), nng_msg_body(message), size);
    else
        (void)enif_make_new_binary(env, 0, &term);
    nng_msg_free(message);
    return term;
}

/* A list of binaries. Whether it is one. */
static inline int tn_parts_measure(ErlNifEnv *env, ERL_NIF_TERM list, size_t *bytes, size_t *parts)
{
    ERL_NIF_TERM head;
    ErlNifBinary part;

    for (*bytes = *parts = 0; enif_get_list_cell(env, list, &head, &list); ++*parts) {
        if (!enif_inspect_binary(env, head, &part))
            return 0;
        *bytes += part.size;
    }
    return enif_is_empty_list(env, list);
}

/* A message with these parts, which are `bytes' long; NULL without memory. */
static inline nng_msg *tn_message_make(ErlNifEnv *env, ERL_NIF_TERM list, size_t bytes)
{
    nng_msg *message;
    ERL_NIF_TERM head;
    ErlNifBinary part;
    unsigned char *to;

    if (nng_msg_alloc(&message, bytes) != 0)
        return NULL;
    to = (unsigned char *)nng_msg_body(message);
    while (enif_get_list_cell(env, list, &head, &list) && enif_inspect_binary(env, head, &part)) {
        if (part.size > 0)
            memcpy(to, part.data, part.size);
        to += part.size;
    }
    tn_charge(env, bytes);
    return message;
}

static inline int tn_is_dirty(void)
{
    return enif_thread_type() == ERL_NIF_THR_DIRTY_CPU_SCHEDULER;
}

#endif
