/* The names of nodes, see node.h. */
#include <stdatomic.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/die.h"
#include "port/ask.h"
#include "term/atom.h"
#include "wire/node.h"

/* A name and creation that our node has or had, or another's. */
struct node_name {
    struct node_name *next;
    struct atom *name;
    uint32_t creation;
};

static _Atomic(struct node_name *) ours;   /* newest first */
static _Atomic(struct node_name *) others; /* that the VM named and are not ours */

struct atom *node_atom(void)
{
    return ours->name;
}

uint32_t node_creation(void)
{
    return ours->creation;
}

void node_set(const unsigned char *name, size_t size, uint32_t creation)
{
    term atom = atom_make(name, size, 1);
    struct node_name *node = host_malloc(sizeof *node);

    if (atom == TERM_NONE)
        host_die("a node's name that is no atom");
    *node = (struct node_name){ours, atom_of(atom), creation};
    ours = node; /* the older ones stay: terms that were on their way name them */
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

int node_is_ours(const unsigned char *name, size_t size, uint32_t creation, int ask)
{
    struct node_name *other;
    term atom;

    if (is_among(ours, name, size, creation))
        return 1;
    if (!ask || is_among(others, name, size, creation))
        return 0;
    /* Another node, or ours since just now. A new name comes before the answer to any query. */
    (void)ask_word("sync");
    if (is_among(ours, name, size, creation))
        return 1;
    atom = atom_make(name, size, 1);
    if (atom == TERM_NONE)
        return 0;
    other = host_malloc(sizeof *other); /* stays: asked for once */
    *other = (struct node_name){others, atom_of(atom), creation};
    while (!atomic_compare_exchange_weak(&others, &other->next, other)) {
    }
    return 0;
}
