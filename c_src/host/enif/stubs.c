/* A function that is MISSING in enif_api.def ends the program, saying its name, when it is called
 * all the same: by a library that looked it up with dlsym. Who imports it is refused at load. */
#include "memory/die.h"

/* The C names differ from the symbols', because the header declares those with their types. */
#define STUB_FULL(name)
#define STUB_PARTIAL(name)
#define STUB_MISSING(name)                                                           \
    __attribute__((visibility("default"))) void missing_##name(void) __asm__(#name); \
    void missing_##name(void)                                                        \
    {                                                                                \
        host_die("the library called %s, which a host does not provide", #name);     \
    }
#define X(name, status, note) STUB_##status(name)
#include "enif_api.def"
