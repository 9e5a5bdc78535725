/* tame/run.h: the moves between the states of a run are those that docs/architecture.md draws, and a
 * run has one owner, whichever side is first. */
#define _GNU_SOURCE
#include "../../test/c/check.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tame/run.h>

#define STATES (TAME_IMPL_ENDED + 1)

static const char *const names[STATES] = {"CALLER",  "QUEUED",  "TURN", "POOLED",
                                          "WORKING", "STOPPED", "DONE", "ENDED"};

static int state_named(const char *name)
{
    for (int i = 0; i < STATES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* The lines "FROM -> TO [TO ...]" between the fences of the drawing. */
static void the_drawing_shows_the_moves_of_the_table(void)
{
    FILE *file = fopen(DRAWING, "r");
    uint32_t drawn[STATES] = {0};
    char line[512];
    int in_drawing = 0;

    CHECK_EQ(file != NULL, 1);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *word, *rest = line;
        int from = -1;

        if (strncmp(line, "```", 3) == 0)
            in_drawing = strcmp(line, "```run\n") == 0;
        if (!in_drawing)
            continue;
        while ((word = strtok_r(rest, " \n", &rest)) != NULL && strcmp(word, "by") != 0) {
            const int state = state_named(word);

            if (from < 0)
                from = state;
            else if (state >= 0)
                drawn[from] |= TAME_IMPL_TO(state);
        }
    }
    if (file != NULL)
        (void)fclose(file);
    for (int i = 0; i < STATES; i++)
        CHECK_EQ(drawn[i], tame_impl_moves(i));
}

static void every_state_but_the_last_leads_to_the_end(void)
{
    uint32_t ends = TAME_IMPL_TO(TAME_IMPL_ENDED);

    for (int round = 0; round < STATES; round++)
        for (int i = 0; i < STATES; i++)
            if (tame_impl_moves(i) & ends)
                ends |= TAME_IMPL_TO(i);
    CHECK_EQ(ends, TAME_IMPL_TO(STATES) - 1);
    CHECK_EQ(tame_impl_moves(TAME_IMPL_ENDED), 0);
}

static void a_move_from_another_state_does_nothing(void)
{
    int state = TAME_IMPL_WORKING;

    CHECK_EQ(tame_impl_move(&state, TAME_IMPL_POOLED, TAME_IMPL_WORKING), 0);
    CHECK_EQ(state, TAME_IMPL_WORKING);
    CHECK_EQ(tame_impl_move(&state, TAME_IMPL_WORKING, TAME_IMPL_DONE), 1);
    CHECK_EQ(tame_impl_state(&state), TAME_IMPL_DONE);
}

/* A thread that is through, and a caller that does not want it: one of them ends the run. */
#define RACES 20000

static int race_state[RACES];
static int thread_won, caller_won;

static void *thread_side(void *arg)
{
    (void)arg;
    for (int i = 0; i < RACES; i++)
        if (!tame_impl_move(&race_state[i], TAME_IMPL_WORKING, TAME_IMPL_DONE))
            thread_won += tame_impl_move(&race_state[i], TAME_IMPL_STOPPED, TAME_IMPL_ENDED);
    return NULL;
}

static void *caller_side(void *arg)
{
    (void)arg;
    for (int i = 0; i < RACES; i++)
        if (!tame_impl_move(&race_state[i], TAME_IMPL_WORKING, TAME_IMPL_STOPPED))
            caller_won += tame_impl_move(&race_state[i], TAME_IMPL_DONE, TAME_IMPL_ENDED);
    return NULL;
}

static void one_of_two_ends_a_run(void)
{
    pthread_t one, two;

    for (int i = 0; i < RACES; i++)
        race_state[i] = TAME_IMPL_WORKING;
    if (pthread_create(&one, NULL, thread_side, NULL) != 0 ||
        pthread_create(&two, NULL, caller_side, NULL) != 0)
        abort();
    (void)pthread_join(one, NULL);
    (void)pthread_join(two, NULL);
    CHECK_EQ(thread_won + caller_won, RACES);
    for (int i = 0; i < RACES; i++)
        if (race_state[i] != TAME_IMPL_ENDED)
            CHECK_EQ(race_state[i], TAME_IMPL_ENDED);
}

int main(void)
{
    RUN(the_drawing_shows_the_moves_of_the_table);
    RUN(every_state_but_the_last_leads_to_the_end);
    RUN(a_move_from_another_state_does_nothing);
    RUN(one_of_two_ends_a_run);
    return check_report();
}
