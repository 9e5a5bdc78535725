/* What the VM has said of itself: every floor may look, load writes it (life/host.c). */
#ifndef TAME_HOST_VM_H
#define TAME_HOST_VM_H

#include <stdint.h>

struct vm {
    int otp_release;
    char otp_release_text[16], erts_text[32];
    int schedulers, async_threads;
    int64_t time_offset_ns;
};

extern struct vm vm;

#endif
