/* tame/otp_features.h - what newer VMs offer, each in one place with the version it came in.
 *
 * Part of tame.h; usable alone. A library is built for the OTP whose erl_nif.h it sees. The Erlang
 * side's are in src/tame_otp_features.erl. */
#ifndef TAME_OTP_FEATURES_H
#define TAME_OTP_FEATURES_H

#include <erl_nif.h>

/* OTP 26, NIF 2.17: enif_set_option with DELAY_HALT and ON_HALT. */
#define TAME_IMPL_HAS_HALT_OPTIONS \
    (ERL_NIF_MAJOR_VERSION > 2 || (ERL_NIF_MAJOR_VERSION == 2 && ERL_NIF_MINOR_VERSION >= 17))

#endif
