/* Resources as terms, see resource.h. */
#include "term/resource.h"

term resource_term(ErlNifEnv *env, struct resource *resource)
{
    struct box_resource *box = env_alloc(env, sizeof *box);

    *box = (struct box_resource){box_header(BOX_RESOURCE, 0), resource};
    env_keep(env, &resource->shared);
    return make_boxed(box);
}
