/* tame/output.h without a VM: its memory is malloc's, counted, and fails when a test says so. */
#include "../../test/c/check.h"
#include "../../test/c/fake_binaries.h"
#include <tame/output.h>

/* ---- a job's state ---- */

struct state {
    struct tame_output out[TAME_MAX_OUTPUTS + 1];
};

static struct state state;

static struct tame_call begin(void)
{
    struct tame_call call;

    memset(&call, 0, sizeof call);
    memset(&state, 0, sizeof state);
    call.impl_state = &state;
    call.impl_state_size = sizeof state;
    fails_at = -1;
    largest = SIZE_MAX;
    allocated = 0;
    atoms[0] = '\0';
    return call;
}

/* Repeats every 251 bytes, a prime, so that no size of a piece hides a shift. */
static unsigned char byte_at(size_t at)
{
    return (unsigned char)(at % 251 + at / 251);
}

static unsigned char bytes[1024 * 1024];

/* Puts `size` bytes behind what is there, `chunk` at a time. Returns whether there was memory. */
static int grow(struct tame_call *call, struct tame_output *out, size_t size, size_t chunk)
{
    while (size > 0) {
        const size_t count = chunk < size ? chunk : size;

        for (size_t i = 0; i < count; i++)
            bytes[i] = byte_at(out->size + i);
        if (!tame_output_append(call, out, bytes, count))
            return 0;
        size -= count;
    }
    return 1;
}

static size_t wrong_bytes(const unsigned char *data, size_t size)
{
    size_t wrong = 0;

    for (size_t i = 0; i < size; i++)
        wrong += data[i] != byte_at(i);
    return wrong;
}

/* As the library does when the steps are done, in steps of `units`. Returns how many there were. */
static size_t gather(struct tame_call *call, size_t units)
{
    size_t steps = 0;

    if (!tame_impl_scattered(call))
        return 0;
    do
        steps++;
    while (tame_impl_gather(call, &state, units) == TAME_MORE);
    return steps;
}

static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 70000, 65536, 300001, 3 * 1024 * 1024 + 5};
#define SIZES (sizeof sizes / sizeof *sizes)

static void any_chunk_and_any_cut_give_the_same_bytes(void)
{
    const size_t chunks[] = {1, 7, 4096, 100000, 1000000}, cuts[] = {1, 3, 1000};

    for (size_t s = 0; s < SIZES; s++)
        for (size_t c = 0; c < 5; c++)
            for (size_t u = 0; u < 3; u++) {
                struct tame_call call = begin();
                struct tame_output *out = &state.out[1];

                CHECK_EQ(grow(&call, out, sizes[s], chunks[c]), 1);
                CHECK_EQ(out->size, sizes[s]);
                gather(&call, cuts[u]);
                CHECK_EQ(out->size, sizes[s]);
                CHECK_EQ(sizes[s] == 0 || out->data != NULL, 1);
                CHECK_EQ(wrong_bytes(out->data, out->size), 0);
                (void)tame_output_term(&call, out);
                CHECK_EQ(term_size, sizes[s]);
                CHECK_EQ(wrong_bytes(term.data, term_size), 0);
                CHECK_EQ(out->size, 0);
                drop();
                tame_output_free(out);
                CHECK_EQ(allocations, 0);
            }
}

/* Made at once, or grown: what matters is what is left. */
static void up_to_64_bytes_lie_on_the_heap(void)
{
    const size_t smalls[] = {0, 1, 63, 64, 65, 4096};

    for (size_t s = 0; s < 6; s++)
        for (size_t room = smalls[s]; room <= 300000; room = room * 5 + 1) {
            struct tame_call call = begin();
            struct tame_output *out = &state.out[0];
            const int before = of_heap;

            CHECK_EQ(tame_output_new(out, room), 1);
            for (size_t i = 0; i < room; i++)
                out->data[i] = byte_at(i);
            tame_output_shrink(&call, out, smalls[s]);
            gather(&call, 5);
            (void)tame_output_term(&call, out);
            CHECK_EQ(of_heap - before, smalls[s] <= 64);
            CHECK_EQ(term_size, smalls[s]);
            CHECK_EQ(wrong_bytes(term.data, term_size), 0);
            tame_output_free(out); /* there is nothing left */
            CHECK_EQ(allocations, 1);
            drop();
            CHECK_EQ(allocations, 0);
        }
}

static void what_is_there_stays_where_it_is_while_more_comes(void)
{
    struct tame_call call = begin();
    struct tame_output *out = &state.out[0];
    size_t room;
    unsigned char *first = tame_output_room(&call, out, 10, &room);

    CHECK_EQ(room >= 10, 1);
    memset(first, 'a', 10);
    tame_output_wrote(out, 10);
    CHECK_EQ(out->data == first, 1);
    CHECK_EQ(grow(&call, out, 2000000, 1000), 1);
    CHECK_EQ(out->data == NULL, 1);
    CHECK_EQ(first[0] + first[9], 2 * 'a');
    /* All bytes are allocated once, besides the room in the last piece. */
    CHECK_EQ(allocated <= 2000010 + 1024 * 1024, 1);
    tame_output_free(out);
    CHECK_EQ(allocations, 0);
}

static void room_is_as_much_as_was_asked_for(void)
{
    struct tame_call call = begin();
    struct tame_output *out = &state.out[0];
    size_t room = 0;

    for (size_t least = 1; least < 3000000; least = least * 3 + 1) {
        unsigned char *to = tame_output_room(&call, out, least, &room);

        CHECK_EQ(to != NULL && room >= least, 1);
        for (size_t i = 0; i < least; i++)
            to[i] = byte_at(out->size + i);
        tame_output_wrote(out, least);
    }
    CHECK_EQ(tame_output_room(&call, out, SIZE_MAX, &room) == NULL, 1);
    gather(&call, 10);
    CHECK_EQ(wrong_bytes(out->data, out->size), 0);
    CHECK_EQ(out->impl_binary.size, out->size);
    tame_output_free(out);
    CHECK_EQ(allocations, 0);
}

static void room_that_was_made_at_once_is_filled_without_a_second_piece(void)
{
    struct tame_call call = begin();
    struct tame_output *out = &state.out[0];
    const unsigned char *data;

    CHECK_EQ(tame_output_new(out, 1000000), 1);
    data = out->data;
    tame_output_shrink(&call, out, 0);
    CHECK_EQ(grow(&call, out, 1000000, 4096), 1);
    CHECK_EQ(tame_impl_scattered(&call), 0);
    CHECK_EQ(out->data == data, 1);
    /* A last piece with nothing in it does not count. */
    CHECK_EQ(tame_output_room(&call, out, 1, &(size_t){0}) != NULL, 1);
    CHECK_EQ(gather(&call, 1), 1);
    CHECK_EQ(out->data == data, 1);
    CHECK_EQ(wrong_bytes(out->data, out->size), 0);
    tame_output_free(out);
    CHECK_EQ(allocations, 0);
}

/* An output of `size` that is made at once and then shrunk, as a term: how many bytes were moved. */
static size_t moved_by_shrinking(size_t size, size_t to, size_t *left)
{
    struct tame_call call = begin();
    struct tame_output *out = &state.out[0];
    size_t before;

    CHECK_EQ(tame_output_new(out, size), 1);
    for (size_t i = 0; i < size; i++)
        out->data[i] = byte_at(i);
    tame_output_shrink(&call, out, to);
    before = allocated;
    gather(&call, 5);
    CHECK_EQ(out->data != NULL, 1);
    (void)tame_output_term(&call, out);
    CHECK_EQ(term_size, to);
    CHECK_EQ(wrong_bytes(term.data, term_size), 0);
    *left = term.size - to;
    drop();
    CHECK_EQ(allocations, 0);
    return allocated - before;
}

static void little_that_is_not_used_stays_and_much_is_given_back(void)
{
    size_t left;

    CHECK_EQ(moved_by_shrinking(1 << 20, (1 << 20) - 100000, &left), 0);
    CHECK_EQ(left, 100000);
    CHECK_EQ(moved_by_shrinking(1 << 20, (1 << 20) - 200000, &left), (1 << 20) - 200000);
    CHECK_EQ(left, 0);
    CHECK_EQ(moved_by_shrinking(1 << 20, 0, &left), 0);
    CHECK_EQ(left, 0);
    CHECK_EQ(moved_by_shrinking(65536, 60000, &left), 0);
    CHECK_EQ(left, 0);
}

static void it_shrinks_to_any_size_and_grows_on(void)
{
    for (size_t s = 0; s < SIZES; s++)
        for (size_t t = 0; t < SIZES; t++) {
            struct tame_call call = begin();
            struct tame_output *out = &state.out[0];
            const size_t least = sizes[s] < sizes[t] ? sizes[s] : sizes[t];

            CHECK_EQ(grow(&call, out, sizes[s], 1000), 1);
            tame_output_shrink(&call, out, sizes[t]);
            CHECK_EQ(out->size, least);
            CHECK_EQ(grow(&call, out, 12345, 1000), 1);
            gather(&call, 2);
            CHECK_EQ(out->size, least + 12345);
            CHECK_EQ(wrong_bytes(out->data, out->size), 0);
            tame_output_free(out);
            CHECK_EQ(allocations, 0);
        }
}

static void it_can_be_freed_at_any_point_of_gathering(void)
{
    for (size_t steps = 0;; steps++) {
        struct tame_call call = begin();
        enum tame_status status = TAME_MORE;

        CHECK_EQ(grow(&call, &state.out[0], 200000, 1000), 1);
        CHECK_EQ(grow(&call, &state.out[2], 50000, 1000), 1);
        for (size_t i = 0; i < steps && status == TAME_MORE; i++)
            status = tame_impl_gather(&call, &state, 1);
        if (steps % 2 == 0) { /* or what is left is gathered at once */
            tame_output_free(&state.out[0]);
        } else {
            (void)tame_output_term(&call, &state.out[0]);
            CHECK_EQ(wrong_bytes(term.data, 200000), 0);
            drop();
        }
        tame_output_free(&state.out[2]);
        CHECK_EQ(allocations, 0);
        if (status == TAME_DONE)
            break;
    }
}

static void several_are_gathered_one_after_the_other(void)
{
    for (size_t units = 1; units < 100; units += 7) {
        struct tame_call call = begin();
        size_t steps, all = 0, pages = 0;

        for (size_t i = 0; i < TAME_MAX_OUTPUTS; i++) {
            CHECK_EQ(grow(&call, &state.out[i], i * 20000 + 5000, 4096), 1);
            all += i * 20000 + 5000;
            pages += (i * 20000 + 5000) / 4096 + 9; /* each piece may end within one */
        }
        steps = gather(&call, units);
        CHECK_EQ(steps >= all / 4096 / units, 1);
        CHECK_EQ(steps <= pages / units + 1 + TAME_MAX_OUTPUTS, 1);
        for (size_t i = 0; i < TAME_MAX_OUTPUTS; i++) {
            CHECK_EQ(wrong_bytes(state.out[i].data, i * 20000 + 5000), 0);
            tame_output_free(&state.out[i]);
        }
        CHECK_EQ(allocations, 0);
    }
}

static void without_memory_nothing_is_lost(void)
{
    int fails, ends = 0;

    for (fails = 0; !ends; fails++) {
        struct tame_call call = begin();
        struct tame_output *out = &state.out[0];
        int grew;

        fails_at = fails;
        grew = grow(&call, out, 300000, 4096);
        CHECK_EQ(out->size % 4096 == 0 || grew || out->size < 300000, 1);
        if (grew) {
            ends = gather(&call, 3) > 0 && call.impl_failure == TAME_IMPL_NO_FAILURE;
            if (ends)
                CHECK_EQ(out->data != NULL, 1);
            else
                CHECK_EQ(said("enomem"), 1);
        } else {
            fails_at = -1; /* it is as it was, and goes on when there is memory again */
            CHECK_EQ(grow(&call, out, 300000 - out->size, 4096), 1);
            gather(&call, 3);
        }
        CHECK_EQ(out->size, 300000);
        if (out->data != NULL)
            CHECK_EQ(wrong_bytes(out->data, out->size), 0);
        tame_output_free(out);
        CHECK_EQ(allocations, 0);
    }
    CHECK_EQ(fails > 10, 1);
}

static void a_term_without_memory_fails_the_call(void)
{
    for (size_t size = 0; size < 10000; size += 9999) {
        struct tame_call call = begin();

        CHECK_EQ(grow(&call, &state.out[0], size, 1000), 1);
        fails_at = 0;
        (void)tame_output_term(&call, &state.out[0]);
        CHECK_EQ(call.impl_failure, TAME_IMPL_REASON);
        CHECK_EQ(said("enomem"), 1);
        tame_output_free(&state.out[0]);
        CHECK_EQ(allocations, 0);
    }
}

static void where_no_large_piece_is_to_be_had_a_small_one_does(void)
{
    struct tame_call call = begin();

    largest = 10000;
    CHECK_EQ(grow(&call, &state.out[0], 200000, 1000), 1);
    CHECK_EQ(state.out[0].size, 200000);
    tame_output_free(&state.out[0]);
    CHECK_EQ(allocations, 0);
}

static void one_that_grows_outside_the_state_is_a_fault(void)
{
    struct tame_call call = begin();
    struct tame_output outside;

    memset(&outside, 0, sizeof outside);
    CHECK_EQ(tame_output_append(&call, &outside, "a", 1), 0);
    CHECK_EQ(call.impl_failure, TAME_IMPL_REASON);
    CHECK_EQ(said("output_outside_state"), 1);
    (void)tame_enomem(&call); /* as the author says then */
    CHECK_EQ(call.impl_outputs_len, 0);
    CHECK_EQ(allocations, 0);
}

static void more_that_grow_than_a_run_may_have_are_a_fault(void)
{
    struct tame_call call = begin();

    for (int times = 0; times < 2; times++)
        for (int i = 0; i < TAME_MAX_OUTPUTS; i++)
            CHECK_EQ(grow(&call, &state.out[i], 5000, 100), 1);
    CHECK_EQ(call.impl_outputs_len, TAME_MAX_OUTPUTS);
    CHECK_EQ(tame_output_append(&call, &state.out[TAME_MAX_OUTPUTS], "a", 1), 0);
    CHECK_EQ(said("too_many_outputs"), 1);
    for (int i = 0; i < TAME_MAX_OUTPUTS; i++)
        tame_output_free(&state.out[i]);
    CHECK_EQ(allocations, 0);
}

static void a_step_is_tested_without_a_call(void)
{
    size_t all = SIZE_MAX;

    (void)begin();
    CHECK_EQ(grow(NULL, &state.out[0], 100000, 1000), 1);
    CHECK_EQ(tame_output_gather(NULL, &state.out[0], &all), TAME_DONE);
    CHECK_EQ(wrong_bytes(state.out[0].data, state.out[0].size), 0);
    tame_output_free(&state.out[0]);
    CHECK_EQ(allocations, 0);
}

int main(void)
{
    RUN(any_chunk_and_any_cut_give_the_same_bytes);
    RUN(up_to_64_bytes_lie_on_the_heap);
    RUN(what_is_there_stays_where_it_is_while_more_comes);
    RUN(room_is_as_much_as_was_asked_for);
    RUN(room_that_was_made_at_once_is_filled_without_a_second_piece);
    RUN(little_that_is_not_used_stays_and_much_is_given_back);
    RUN(it_shrinks_to_any_size_and_grows_on);
    RUN(it_can_be_freed_at_any_point_of_gathering);
    RUN(several_are_gathered_one_after_the_other);
    RUN(without_memory_nothing_is_lost);
    RUN(a_term_without_memory_fails_the_call);
    RUN(where_no_large_piece_is_to_be_had_a_small_one_does);
    RUN(one_that_grows_outside_the_state_is_a_fault);
    RUN(more_that_grow_than_a_run_may_have_are_a_fault);
    RUN(a_step_is_tested_without_a_call);
    return check_report();
}
