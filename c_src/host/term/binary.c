/* Bytes that are shared, see binary.h. */
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/work.h"
#include "term/binary.h"

static void release(struct shared *shared)
{
    free(shared);
}

static struct binary *set_up(struct binary *binary, size_t size)
{
    if (binary != NULL) {
        binary->shared.refs = 1;
        binary->shared.release = release;
        binary->size = size;
    }
    return binary;
}

struct binary *binary_new(size_t size)
{
    return set_up(host_malloc(sizeof(struct binary) + size + BINARY_SLACK_BYTES), size);
}

struct binary *binary_try_resize(struct binary *binary, size_t size)
{
    if (size > PTRDIFF_MAX / 2)
        return NULL;
    return set_up(realloc(binary, sizeof *binary + size + BINARY_SLACK_BYTES), size);
}

struct binary *binary_try_new(size_t size)
{
    return binary_try_resize(NULL, size);
}

int binary_keeps(const struct shared *owner)
{
    return owner->release == release;
}

/* The binary, or NULL: it is none, or its last byte is incomplete. */
struct box_binary *binary_whole(term t)
{
    struct box_binary *binary = is_kind(t, BOX_BINARY) ? box_of(t) : NULL;

    return binary == NULL || binary->last_bits != 0 ? NULL : binary;
}

/* A library is about to see where the bytes are: what is lent gets bytes of its own, aligned and
 * with room behind them. What is only passed through is never copied. Lent are terms of a call's
 * environment alone, which one thread uses at a time. */
void binary_settle(ErlNifEnv *env, struct box_binary *lent)
{
    if (lent->header != box_header(BOX_BINARY, BINARY_LENT))
        return;
    struct binary *own = binary_new(lent->size);
    memcpy(own->data, lent->data, lent->size);
    env_keep(env, &own->shared);
    shared_drop(&own->shared); /* the environment keeps it now */
    lent->header = box_header(BOX_BINARY, 0);
    lent->data = own->data;
    lent->owner = &own->shared;
}

/* Goes over an iolist. out NULL: only counts. Returns 0 when it is none. */
int binary_walk_iolist(term list, unsigned char *out, size_t *size)
{
    struct work work;
    int ok = 1;

    *size = 0;
    work_init(&work, sizeof(term));
    *(term *)work_push(&work) = list;
    while (ok && work.len > 0) {
        term t = *(term *)work_top(&work);
        work_pop(&work);

        for (;;) {
            struct box_binary *binary = binary_whole(t);
            if (binary != NULL) {
                if (out != NULL && binary->size > 0)
                    memcpy(out + *size, binary->data, binary->size);
                *size += binary->size;
                break;
            }
            if (t == TERM_NIL)
                break;
            if (!is_list_cell(t)) {
                ok = 0;
                break;
            }
            term head = cell_of(t)[0];
            t = cell_of(t)[1];
            if (is_small(head)) {
                if (small_value(head) < 0 || small_value(head) > 255) {
                    ok = 0;
                    break;
                }
                if (out != NULL)
                    out[*size] = (unsigned char)small_value(head);
                ++*size;
            } else {
                *(term *)work_push(&work) = t;
                t = head;
            }
        }
    }
    work_free(&work);
    return ok;
}
