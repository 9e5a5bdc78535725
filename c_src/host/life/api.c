/* The list of the API's functions, see api.h; and the check that it is the header's. */
#include <string.h>

#include "life/api.h"
#include "memory/nif.h"

/* A function of the header that enif_api.def does not list stops the compiler here: "LISTED_<its
 * name> undeclared". Add a row for it; MISSING is a status. */
enum {
#define X(name, status, note) LISTED_##name,
#include "enif_api.def"
#undef X
    LISTED_LEN
};

#define ERL_NIF_API_FUNC_DECL(type, name, args) enum { HEADER_##name = LISTED_##name }
/* Without this the header would also define its inline functions a second time. */
#pragma push_macro("__GNUC__")
#undef __GNUC__
#include <erl_nif_api_funcs.h>
#pragma pop_macro("__GNUC__")
#undef ERL_NIF_API_FUNC_DECL

/* And a row that the header does not have: "HEADER_<its name> undeclared". */
#define X(name, status, note) _Static_assert((int)HEADER_##name == (int)LISTED_##name, #name);
#include "enif_api.def"
#undef X

static const struct api_function functions[] = {
#define X(name, status, note) {#name, API_##status, note},
#include "enif_api.def"
#undef X
};

const struct api_function *api_find(const char *name)
{
    for (size_t i = 0; i < LISTED_LEN; i++) {
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    }
    return NULL;
}

void api_print_markdown(FILE *to)
{
    static const char *const status_names[] = {"full", "partial", "missing"};
    int counts[3] = {0};

    for (size_t i = 0; i < LISTED_LEN; i++)
        counts[functions[i].status]++;
    fprintf(
        to,
        "# What a host provides of erl_nif\n\n"
        "Generated from `c_src/host/enif_api.def` by `tame_host --api`, for NIF version %d.%d: %d\n"
        "functions, %d of them full, %d partial, %d missing. *Full*: a library sees no difference "
        "from "
        "the VM.\nA library that imports a missing function is refused before any of its code "
        "runs.\n\n| function | status | note |\n| --- | --- | --- |\n",
        ERL_NIF_MAJOR_VERSION, ERL_NIF_MINOR_VERSION, LISTED_LEN, counts[API_FULL],
        counts[API_PARTIAL], counts[API_MISSING]);
    for (size_t i = 0; i < LISTED_LEN; i++)
        fprintf(to, "| `%s` | %s | %s |\n", functions[i].name, status_names[functions[i].status],
                functions[i].note);
}
