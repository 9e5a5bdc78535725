/* The queue of queue.h: order, length, reuse of nodes. */
#include "../../test/c/check.h"
#include "queue.h"

struct item {
    struct queue_node node;
    int value;
};

static void an_empty_queue_gives_nothing(void)
{
    struct queue queue;

    queue_init(&queue);
    CHECK_EQ(queue_pop(&queue) == NULL, 1);
    CHECK_EQ(queue.len, 0);
}

static void nodes_come_out_in_the_order_they_went_in(void)
{
    struct queue queue;
    struct item items[100];

    queue_init(&queue);
    for (int i = 0; i < 100; i++) {
        items[i].value = i;
        queue_push(&queue, &items[i].node);
    }
    CHECK_EQ(queue.len, 100);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(((struct item *)queue_pop(&queue))->value, i);
    CHECK_EQ(queue_pop(&queue) == NULL, 1);
}

static void a_queue_that_ran_empty_works_again(void)
{
    struct queue queue;
    struct item item = {.value = 7};

    queue_init(&queue);
    for (int i = 0; i < 3; i++) {
        queue_push(&queue, &item.node);
        CHECK_EQ(((struct item *)queue_pop(&queue))->value, 7);
        CHECK_EQ(queue.len, 0);
    }
}

int main(void)
{
    RUN(an_empty_queue_gives_nothing);
    RUN(nodes_come_out_in_the_order_they_went_in);
    RUN(a_queue_that_ran_empty_works_again);
    return check_report();
}
