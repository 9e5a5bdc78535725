/* Loading a NIF library, see load.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "life/api.h"
#include "life/call.h"
#include "life/host.h"
#include "life/library.h"
#include "life/load.h"
#include "life/resource_type.h"
#include "life/worker.h"
#include "memory/die.h"
#include "memory/vm.h"
#include "term/atom.h"
#include "term/map.h"
#include "wire/etf.h"
#include "wire/query.h"
#include "wire/tell.h"

/* A library may use a function of these without being linked with them, because the emulator is. */
static const char *const emulator_libraries[] = {"libz.so.1", "libm.so.6", "libtinfo.so.6",
                                                 "libstdc++.so.6"};

__attribute__((format(printf, 3, 4))) static int refuse(struct refusal *refusal, const char *reason,
                                                        const char *format, ...)
{
    va_list args;

    refusal->reason = reason;
    va_start(args, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, args);
    va_end(args);
    return -1;
}

/* ---- before any of its code runs ------------------------------------------------------ */

size_t load_missing(const struct elf_imports *imports, const char **names, size_t max)
{
    size_t len = 0;

    for (size_t i = 0; i < imports->len; i++) {
        const char *name = imports->names[i];
        const struct api_function *function = api_find(name);

        if (strncmp(name, "enif_", 5) != 0 || (function != NULL && function->status != API_MISSING))
            continue;
        if (len < max)
            names[len] = name;
        len++;
    }
    return len;
}

int load_check(const char *path, struct elf_imports *imports, struct refusal *refusal)
{
    const char *names[16];
    char list[512] = "";

    refusal->reason = NULL;
    switch (elf_read(path, imports)) {
    case ELF_OK:
        break;
    case ELF_NO_FILE:
        return errno == ENOENT || errno == ENOTDIR
                   ? refuse(refusal, "no_such_file", "there is no file %s", path)
                   : refuse(refusal, "cannot_read", "cannot read %s: %s", path, strerror(errno));
    case ELF_NOT_ELF:
        return refuse(refusal, "bad_library", "%s is not a shared library, or not a whole one",
                      path);
    case ELF_OTHER_MACHINE:
        return refuse(refusal, "wrong_architecture",
                      "%s is built for another processor: build it on this machine", path);
    }
    size_t missing = load_missing(imports, names, 16);
    if (missing == 0)
        return 0;
    for (size_t i = 0; i < missing && i < 16; i++) {
        strncat(list, i == 0 ? "" : ", ", sizeof list - strlen(list) - 1);
        strncat(list, names[i], sizeof list - strlen(list) - 1);
    }
    return refuse(refusal, "missing_functions",
                  "%s needs what a host does not provide: %s. Load it into the VM instead", path,
                  list);
}

/* ---- its code runs -------------------------------------------------------------------- */

static void *open_library(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (handle != NULL)
        return handle;
    /* Nothing of it has run: symbols are looked up first. */
    for (size_t i = 0; i < sizeof emulator_libraries / sizeof *emulator_libraries; i++)
        (void)dlopen(emulator_libraries[i], RTLD_LAZY | RTLD_GLOBAL);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* "erts-12.0" against "13.1.5". What is written in another way (rustler writes "OTP-24.0") asks for
 * nothing that the NIF version does not say. */
static int is_newer_erts(const char *wanted, const char *have)
{
    int wanted_parts[3] = {0}, have_parts[3] = {0};

    if (sscanf(wanted, "erts-%d.%d.%d", wanted_parts, wanted_parts + 1, wanted_parts + 2) < 1 ||
        sscanf(have, "%d.%d.%d", have_parts, have_parts + 1, have_parts + 2) < 1)
        return 0;
    for (int i = 0; i < 3; i++) {
        if (wanted_parts[i] != have_parts[i])
            return wanted_parts[i] > have_parts[i];
    }
    return 0;
}

static int check_entry(const char *path, ErlNifEntry *entry, struct refusal *refusal)
{
    if (entry == NULL)
        return refuse(refusal, "bad_library", "nif_init of %s returned NULL", path);
    if (entry->major != ERL_NIF_MAJOR_VERSION || entry->minor > ERL_NIF_MINOR_VERSION)
        return refuse(refusal, "needs_newer_erts",
                      "%s is built for NIF version %d.%d, and this is %d.%d: build it for this OTP",
                      path, entry->major, entry->minor, ERL_NIF_MAJOR_VERSION,
                      ERL_NIF_MINOR_VERSION);
    if (entry->minor >= 1 && strcmp(entry->vm_variant, ERL_NIF_VM_VARIANT) != 0)
        return refuse(refusal, "bad_library", "%s is built for the VM variant \"%s\", not \"%s\"",
                      path, entry->vm_variant, ERL_NIF_VM_VARIANT);
    if (entry->minor >= 14 && entry->min_erts != NULL && vm.erts_text[0] != '\0' &&
        is_newer_erts(entry->min_erts, vm.erts_text))
        return refuse(refusal, "needs_newer_erts", "%s needs %s or newer, and this is erts-%s",
                      path, entry->min_erts, vm.erts_text);
    if (entry->num_of_funcs < 0 || (entry->num_of_funcs > 0 && entry->funcs == NULL))
        return refuse(refusal, "bad_library", "%s has no table of functions", path);
    if (entry->num_of_funcs > LIBRARY_FUNCTIONS_MAX)
        return refuse(refusal, "bad_library", "%s has %d functions, and %d are the most", path,
                      entry->num_of_funcs, LIBRARY_FUNCTIONS_MAX);
    return 0;
}

struct library *load_open(const char *path, struct refusal *refusal)
{
    ErlNifEntry *(*nif_init)(void) = NULL;
    ErlNifEntry *entry = NULL;
    void *handle = open_library(path);

    refusal->reason = NULL;
    if (handle == NULL) {
        refuse(refusal, "bad_library", "%s", dlerror());
        return NULL;
    }
    *(void **)&nif_init = dlsym(handle, "nif_init");
    if (nif_init == NULL)
        refuse(refusal, "bad_library", "%s is no NIF library: it has no nif_init", path);
    else
        entry = nif_init();
    if (nif_init == NULL || check_entry(path, entry, refusal) < 0) {
        dlclose(handle);
        return NULL;
    }
    return library_new(handle, entry);
}

/* Its share of the table goes; unload is called when nobody else has one. */
static void retire(unsigned number)
{
    struct library *library = host_calls_end(number);

    if (library == NULL)
        return;
    resource_types_disown(library);
    host_calls_ended(library);
}

void load_retire(unsigned number)
{
    ErlNifEnv env;

    worker_begin_call(); /* its unload has run when worker_end_call returns */
    retire(number);
    worker_end_call();
    env_init(&env, ENV_INDEPENDENT);
    tell(query_term(&env, "unloaded", 1, make_small((int)number)));
    env_destroy(&env);
}

/* The last first: an upgraded library may use what the one before it has made. */
void load_unload_all(void)
{
    for (unsigned number = LIBRARIES_MAX; number-- > 0;) {
        struct library *library = host_calls_end(number);
        ErlNifEnv env;

        if (library == NULL || library->entry->unload == NULL)
            continue;
        env_init(&env, ENV_CALLBACK);
        env.library = library;
        library->entry->unload(&env, library->priv_data);
        env_destroy(&env);
    }
}

/* ---- the request ---------------------------------------------------------------------- */

struct request {
    char *path; /* ended by a zero byte, in the environment */
    term module, load_info;
    term loader; /* a pid, or TERM_NONE */
    unsigned number;
    struct library *upgraded; /* that of the module's version before; NULL: there is none */
};

/* One of the table, or max. */
static unsigned number_setting(ErlNifEnv *env, term settings, const char *key)
{
    const term *value = map_find(env, settings, atom_named(key));

    return value != NULL && is_small(*value) && small_value(*value) >= 0 &&
                   small_value(*value) < LIBRARIES_MAX
               ? (unsigned)small_value(*value)
               : LIBRARIES_MAX;
}

static int read_request(ErlNifEnv *env, const unsigned char *rest, size_t size,
                        struct request *request)
{
    struct etf_cursor cursor = {rest, rest + size, 0};
    term parts[4];

    /* Settings first: they say who this node is, and so which pids in load_info are its own. */
    const unsigned char *bytes[4];
    size_t sizes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = etf_skip(&cursor, &sizes[i]);
    for (int i = 3; i >= 0 && !cursor.bad; i--) {
        if (etf_read(env, bytes[i], sizes[i], ETF_TRUSTED, &parts[i]) != sizes[i])
            cursor.bad = 1;
        if (i == 3 && !cursor.bad && is_kind(parts[3], BOX_MAP))
            host_apply_settings(env, parts[3]);
    }
    if (cursor.bad || !is_kind(parts[0], BOX_BINARY) || !is_atom(parts[1]) ||
        !is_kind(parts[3], BOX_MAP))
        return -1;
    struct box_binary *path = box_of(parts[0]);
    request->path = env_alloc(env, path->size + 1);
    memcpy(request->path, path->data, path->size);
    request->path[path->size] = '\0';
    request->module = parts[1];
    request->load_info = parts[2];
    const term *loader = map_find(env, parts[3], atom_named("caller"));
    request->loader = loader == NULL ? TERM_NONE : *loader;
    request->number = number_setting(env, parts[3], "library");
    request->upgraded = host_calls_library(number_setting(env, parts[3], "upgrades"));
    return request->number < LIBRARIES_MAX && host_calls_library(request->number) == NULL ? 0 : -1;
}

/* Load, or upgrade where the module's version before has a library, as the VM does. */
static int call_load(ErlNifEnv *env, struct library *library, const struct request *request,
                     struct refusal *refusal)
{
    ErlNifEntry *entry = library->entry;
    struct library *before = request->upgraded;
    void *before_data = before == NULL ? NULL : before->priv_data;
    int value = 0;

    if (before != NULL && entry->upgrade == NULL)
        return refuse(refusal, "no_upgrade", "Upgrade not supported by this NIF library.");
    env->library = library;
    env->loader = request->loader;
    library->loading = 1;
    if (before != NULL)
        value = entry->upgrade(env, &library->priv_data, &before->priv_data, request->load_info);
    else if (entry->load != NULL)
        value = entry->load(env, &library->priv_data, request->load_info);
    library->loading = 0;
    env->loader = TERM_NONE;
    if (value == 0)
        return 0;
    resource_types_roll_back();
    if (before != NULL)
        before->priv_data = before_data;
    refusal->value = value;
    return before == NULL ? refuse(refusal, "load_returned", "%s: its load callback returned %d",
                                   request->path, value)
                          : refuse(refusal, "upgrade_returned",
                                   "%s: its upgrade callback returned %d", request->path, value);
}

static int is_among(const char *name, const char *const *names, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strcmp(name, names[i]) == 0)
            return 1;
    }
    return 0;
}

/* What the library can do. One that looks up symbols while it runs may use any function, and so may
 * one that imports others' functions but none of the API: another library may use it for it. */
static void note_imports(struct library *library, const struct elf_imports *imports)
{
    static const char *const lookups[] = {"dlsym", "dlvsym"};
    static const char *const askers[] = {"enif_self", "enif_select", "enif_select_x",
                                         "enif_dynamic_resource_call"};
    static const char *const senders[] = {
        "enif_send",   "enif_port_command", "enif_monitor_process",
        "enif_select", "enif_select_x",     "enif_dynamic_resource_call"};
    /* What the linker puts into each library. */
    static const char *const linkers[] = {"_ITM_deregisterTMCloneTable",
                                          "_ITM_registerTMCloneTable", "__cxa_finalize",
                                          "__gmon_start__"};
    int any = 0, of_api = 0, others = 0;

    for (size_t i = 0; i < imports->len; i++) {
        const char *name = imports->names[i];
        any |= is_among(name, lookups, sizeof lookups / sizeof *lookups);
        of_api |= strncmp(name, "enif_", 5) == 0;
        others |= !is_among(name, linkers, sizeof linkers / sizeof *linkers);
        library->wants_caller |= is_among(name, askers, sizeof askers / sizeof *askers);
        library->sends |= is_among(name, senders, sizeof senders / sizeof *senders);
    }
    if (any || (!of_api && others))
        library->wants_caller = library->sends = 1;
}

/* NULL: refused. */
static struct library *load_library(ErlNifEnv *env, const struct request *request,
                                    struct elf_imports *imports, struct refusal *refusal)
{
    const char *module = (const char *)atom_of(request->module)->name;
    struct library *library;

    if (load_check(request->path, imports, refusal) < 0 ||
        (library = load_open(request->path, refusal)) == NULL)
        return NULL;
    note_imports(library, imports);
    if (strcmp(library->module, module) != 0) {
        refuse(refusal, "bad_library", "%s is the library of module %s, not of %s", request->path,
               library->module, module);
    } else if (call_load(env, library, request, refusal) == 0) {
        resource_types_commit(library);
        library->loaded = 1;
        host_calls_begin(request->number, library); /* its share is the table's from now on */
        return library;
    }
    env->library = NULL;
    shared_drop(&library->shared);
    return NULL;
}

/* [{Name, Arity, Flags}]; names are binaries: the module has the atoms, but we must not say which.
 */
static term function_list(ErlNifEnv *env, const struct library *library)
{
    term list = TERM_NIL;

    for (int i = library->entry->num_of_funcs; i-- > 0;) {
        const ErlNifFunc *function = library_function(library, i);
        term parts[] = {term_latin1(env, function->name), make_small(function->arity),
                        make_small(library_flags(library, function))};
        list = term_cons(env, term_tuple(env, 3, parts), list);
    }
    return list;
}

static term truth(int value)
{
    return value ? ATOM(true) : ATOM(false);
}

static void answer_loaded(ErlNifEnv *env, const struct library *library, unsigned number)
{
    term info = map_empty(env);

    info = map_put(env, info, atom_named("library"), make_small((int)number));
    info = map_put(env, info, atom_named("wants_caller"), truth(library->wants_caller));
    info = map_put(env, info, atom_named("sends"), truth(library->sends));
    /* However they were opened, it was in load or upgrade, which has returned. */
    info = map_put(env, info, atom_named("resources"), truth(resource_types_has(library)));
    tell(query_term(env, "loaded", 2, function_list(env, library), info));
}

static void answer_refused(ErlNifEnv *env, const struct elf_imports *imports,
                           const struct refusal *refusal)
{
    const char *names[64];
    size_t len = load_missing(imports, names, 64);
    term details = map_empty(env), list = TERM_NIL;

    if (strcmp(refusal->reason, "missing_functions") == 0) {
        for (size_t i = len < 64 ? len : 64; i-- > 0;)
            list = term_cons(env, term_text(env, names[i]), list);
        details = map_put(env, details, atom_named("functions"), list);
    }
    if (refusal->value != 0)
        details = map_put(env, details, atom_named("value"), make_small(refusal->value));
    tell(query_term(env, "refused", 3, atom_named(refusal->reason), details,
                    term_text(env, refusal->text)));
}

void load_request(const unsigned char *rest, size_t size)
{
    struct refusal refusal = {0};
    struct elf_imports imports = {0};
    struct request request;
    ErlNifEnv env;

    env_init(&env, ENV_CALLBACK);
    if (read_request(&env, rest, size, &request) < 0)
        host_die("a malformed load request");
    worker_begin_call(); /* what it lets go of ends before the answer */
    const struct library *library = load_library(&env, &request, &imports, &refusal);
    worker_end_call();
    if (library != NULL)
        answer_loaded(&env, library, request.number);
    else
        answer_refused(&env, &imports, &refusal);
    elf_free(&imports);
    env_destroy(&env);
}
