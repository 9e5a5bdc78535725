/* What differs from one OTP to another, each in one place with the version it came in: of the VM that
 * the host serves, and of the erl_nif.h that the host is built with (whose functions are in
 * enif_api.def). tame.h's are in c_include/tame/otp_features.h, the Erlang side's in
 * src/tame_otp_features.erl. */
#ifndef TAME_HOST_OTP_H
#define TAME_HOST_OTP_H

#include "memory/nif.h"
#include "memory/vm.h"

/* OTP 26: enif_set_option, enif_make_new_atom, enif_get_string_length, and ERL_NIF_UTF8. */
#define HAS_NIF_2_17 (ERL_NIF_MINOR_VERSION >= 17)

/* Whether the encoding is one that erl_nif.h knows. */
static inline int known_encoding(ErlNifCharEncoding encoding)
{
#if HAS_NIF_2_17
    if (encoding == ERL_NIF_UTF8)
        return 1;
#endif
    return encoding == ERL_NIF_LATIN1;
}

/* OTP 29: enif_term_size, enif_get_atom_cache_index, enif_max_atom_cache_index. */
#define HAS_NIF_2_18 (ERL_NIF_MINOR_VERSION >= 18)

/* OTP 26: every port is written with 64 bits, every atom in UTF-8, and fewer bits of an identifier
 * are looked at when it is read. */
static inline int otp_writes_wide(void)
{
    return vm.otp_release >= 26;
}

/* OTP 26: a small map has its atoms in the order in which they were made: it stays in the order in
 * which it came, but that is not the order of its keys. */
static inline int otp_sorts_small_maps(void)
{
    return vm.otp_release < 26;
}

/* OTP 27: 0.0 and -0.0 are two values to =:= . */
static inline int otp_tells_zeros_apart(void)
{
    return vm.otp_release >= 27;
}

/* OTP 27: enif_hash of ERL_NIF_INTERNAL_HASH fills a word. */
static inline int otp_hashes_wide(void)
{
    return vm.otp_release >= 27;
}

/* OTP 27: a binary is what the library's data and size say, even where they have moved, and a large
 * part of a resource's binary still is the resource's. */
static inline int otp_has_binary_parts(void)
{
    return vm.otp_release >= 27;
}

#endif
