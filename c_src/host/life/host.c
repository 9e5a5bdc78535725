/* The beginning, see host.h. */
#include <stdlib.h>
#include <string.h>

#include "life/host.h"
#include "memory/vm.h"
#include "memory/vm_clock.h"
#include "term/atom.h"
#include "term/binary.h"
#include "term/map.h"
#include "wire/node.h"

void host_init(void)
{
    atom_init();
    node_set((const unsigned char *)"nonode@nohost", strlen("nonode@nohost"), 0);
}

/* ---- what the VM says of itself ------------------------------------------------------- */

static const term *setting(ErlNifEnv *env, term settings, const char *key)
{
    return map_find(env, settings, atom_named(key));
}

static void int_setting(ErlNifEnv *env, term settings, const char *key, int *to)
{
    const term *value = setting(env, settings, key);

    if (value != NULL && is_small(*value))
        *to = (int)small_value(*value);
}

static void ns_setting(ErlNifEnv *env, term settings, const char *key, int64_t *to)
{
    const term *value = setting(env, settings, key);
    int negative;
    uint64_t ns;

    if (value != NULL && term_magnitude(*value, &negative, &ns) && ns <= INT64_MAX)
        *to = negative ? -(int64_t)ns : (int64_t)ns;
}

static void text_setting(ErlNifEnv *env, term settings, const char *key, char *to, size_t size)
{
    const term *value = setting(env, settings, key);
    struct box_binary *text = value == NULL ? NULL : binary_whole(*value);

    if (text != NULL && text->size < size) {
        memcpy(to, text->data, text->size);
        to[text->size] = '\0';
    }
}

void host_apply_settings(ErlNifEnv *env, term settings)
{
    int64_t monotonic_offset_ns = INT64_MIN; /* none */

    text_setting(env, settings, "otp_release", vm.otp_release_text, sizeof vm.otp_release_text);
    if (vm.otp_release_text[0] != '\0')
        vm.otp_release = atoi(vm.otp_release_text);
    text_setting(env, settings, "erts", vm.erts_text, sizeof vm.erts_text);
    int_setting(env, settings, "schedulers", &vm.schedulers);
    int_setting(env, settings, "async_threads", &vm.async_threads);
    ns_setting(env, settings, "time_offset_ns", &vm.time_offset_ns);
    ns_setting(env, settings, "monotonic_offset_ns", &monotonic_offset_ns);
    if (monotonic_offset_ns >= -VM_CLOCK_OFFSET_MAX && monotonic_offset_ns <= VM_CLOCK_OFFSET_MAX)
        vm_clock_set(monotonic_offset_ns);
}
