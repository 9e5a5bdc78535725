/* tame/queue.h: order, and leaving from anywhere. */
#include "../../test/c/check.h"
#include <tame/queue.h>

#include <string.h>

#define ENTRIES 5

struct entry {
    struct tame_impl_link link; /* first */
    int number;
};

static struct tame_impl_queue queue;
static struct entry entries[ENTRIES];

static void begin(void)
{
    memset(&queue, 0, sizeof queue);
    memset(entries, 0, sizeof entries);
    for (int i = 0; i < ENTRIES; i++) {
        entries[i].number = i;
        tame_impl_queue_push(&queue, &entries[i].link);
    }
}

static int next(void)
{
    struct entry *entry = (struct entry *)tame_impl_queue_pop(&queue);

    return entry == NULL ? -1 : entry->number;
}

static void entries_come_in_the_order_in_which_they_went(void)
{
    begin();
    CHECK_EQ(queue.len, ENTRIES);
    for (int i = 0; i < ENTRIES; i++)
        CHECK_EQ(next(), i);
    CHECK_EQ(next(), -1);
    CHECK_EQ(queue.len, 0);
}

/* In an empty queue, and in front of others. */
static void one_may_go_in_front(void)
{
    begin();
    for (int i = 0; i < ENTRIES; i++)
        CHECK_EQ(tame_impl_queue_remove(&queue, &entries[i].link), 1);
    for (int i = 0; i < ENTRIES; i++)
        tame_impl_queue_push_first(&queue, &entries[i].link);
    CHECK_EQ(tame_impl_queue_remove(&queue, &entries[1].link), 1);
    tame_impl_queue_push(&queue, &entries[1].link);
    CHECK_EQ(queue.len, ENTRIES);
    for (int i = ENTRIES - 1; i >= 0; i--)
        if (i != 1)
            CHECK_EQ(next(), i);
    CHECK_EQ(next(), 1);
    CHECK_EQ(next(), -1);
}

/* Every subset leaves, in both orders; the others stay as they stood. */
static void any_may_leave_from_anywhere(void)
{
    for (unsigned leaving = 0; leaving < 1u << ENTRIES; leaving++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            begin();
            for (int i = 0; i < ENTRIES; i++) {
                const int which = backwards ? ENTRIES - 1 - i : i;

                if (leaving >> which & 1)
                    CHECK_EQ(tame_impl_queue_remove(&queue, &entries[which].link), 1);
            }
            for (int i = 0; i < ENTRIES; i++)
                if (!(leaving >> i & 1))
                    CHECK_EQ(next(), i);
            CHECK_EQ(next(), -1);
            CHECK_EQ(queue.len, 0);
        }
    }
}

static void who_has_left_cannot_leave_again(void)
{
    struct tame_impl_queue other = {NULL, NULL, 0};

    begin();
    CHECK_EQ(tame_impl_queue_remove(&other, &entries[2].link), 0);
    CHECK_EQ(tame_impl_queue_remove(&queue, &entries[2].link), 1);
    CHECK_EQ(tame_impl_queue_remove(&queue, &entries[2].link), 0);
    CHECK_EQ(next(), 0);
    CHECK_EQ(tame_impl_queue_remove(&queue, &entries[0].link), 0);
    tame_impl_queue_push(&other, &entries[0].link);
    CHECK_EQ(tame_impl_queue_remove(&queue, &entries[0].link), 0);
    CHECK_EQ(queue.len, 3);
    CHECK_EQ(other.len, 1);
}

int main(void)
{
    RUN(entries_come_in_the_order_in_which_they_went);
    RUN(one_may_go_in_front);
    RUN(any_may_leave_from_anywhere);
    RUN(who_has_left_cannot_leave_again);
    return check_report();
}
