/* What several terms or environments may keep: a binary or a resource. */
#ifndef TAME_HOST_SHARED_H
#define TAME_HOST_SHARED_H

struct shared {
    _Atomic long refs;
    void (*release)(struct shared *shared); /* called once, when refs falls to 0 */
};

/* One share more, one less; shared may be NULL. */
void shared_keep(struct shared *shared);
void shared_drop(struct shared *shared);

/* Keeps it unless it is being released already; then returns 0. */
int shared_keep_live(struct shared *shared);

#endif
