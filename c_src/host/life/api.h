/* The list of the API's functions, from enif_api.def. */
#ifndef TAME_HOST_API_H
#define TAME_HOST_API_H

#include <stdio.h>

enum api_status { API_FULL, API_PARTIAL, API_MISSING };

struct api_function {
    const char *name;
    enum api_status status;
    const char *note;
};

/* NULL: not a function of the API that we were built with. */
const struct api_function *api_find(const char *name);

/* The page docs/reference/host_api.md. */
void api_print_markdown(FILE *to);

#endif
