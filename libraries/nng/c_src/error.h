/* error.h - nng's errors by the names that gen_tcp gives where they mean the same. */
#ifndef TAME_NNG_ERROR_H
#define TAME_NNG_ERROR_H

#include <erl_driver.h>
#include <nng/nng.h>

static inline const char *tn_error_name(int error)
{
    switch (error) {
    case NNG_ECLOSED:
    case NNG_ECONNSHUT:
    case NNG_ECONNRESET:
        return "closed";
    case NNG_ETIMEDOUT:
        return "timeout";
    case NNG_ENOMEM:
        return "enomem";
    case NNG_EBUSY:
        return "ebusy";
    case NNG_ECONNREFUSED:
        return "econnrefused";
    case NNG_EAGAIN:
        return "eagain";
    case NNG_ENOTSUP:
        return "enotsup";
    case NNG_EADDRINUSE:
        return "eaddrinuse";
    case NNG_ESTATE:
        return "estate";
    case NNG_ENOENT:
        return "enoent";
    case NNG_EPROTO:
        return "eproto";
    case NNG_EUNREACHABLE:
        return "ehostunreach";
    case NNG_EADDRINVAL:
        return "eaddrnotavail";
    case NNG_EPERM:
        return "eperm";
    case NNG_EMSGSIZE:
        return "emsgsize";
    case NNG_ECONNABORTED:
        return "econnaborted";
    case NNG_ECANCELED:
        return "ecanceled";
    case NNG_ENOFILES:
        return "emfile";
    case NNG_ENOSPC:
        return "enospc";
    case NNG_EEXIST:
        return "eexist";
    default:
        return error & NNG_ESYSERR ? erl_errno_id(error & ~NNG_ESYSERR) : "einval";
    }
}

#endif
