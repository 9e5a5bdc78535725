/* What include_one.c uses of include_two.c. */
#ifndef INCLUDE_TWO_H
#define INCLUDE_TWO_H

#include <tame.h>

#pragma GCC visibility push(hidden)

struct include_two {
    struct tame_output out;
    size_t done;
};

enum tame_status include_two_init(struct tame_call *call, struct include_two *state);
enum tame_status include_two_step(struct tame_call *call, void *state, size_t units);
void include_two_cleanup(void *state);

#pragma GCC visibility pop

#endif
