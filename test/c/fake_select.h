/* fake_select.h - enif_select for fake_nif.h: one thread polls, tells who waits, and stops descriptors later.
 * Every other stop is done at once, as the VM does what epoll takes. */
#ifndef TEST_FAKE_SELECT_H
#define TEST_FAKE_SELECT_H

#include <poll.h>
#include <sched.h>

#include "fake_nif.h"

#define FAKE_NUMBERS 1024

/* What the VM knows of a number. */
struct fake_selected {
    void *object; /* a hold on the resource; NULL: nothing is known */
    int armed[2], stops;
    ErlNifPid pid[2];
    ERL_NIF_TERM message[2][3];
};

static pthread_mutex_t fake_selected_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct fake_selected fake_selected[FAKE_NUMBERS];
static int fake_stops;

static int fake_select_over;                                /* atomic */
static const ErlNifResourceTypeInit *fake_select_callbacks; /* `stop` is all that is called */

static void fake_stop(void *object, int number, int direct)
{
    struct enif_environment_t env;

    memset(&env, 0, sizeof env);
    fake_select_callbacks->stop(&env, object, number, direct);
    enif_clear_env(&env);
    enif_release_resource(object);
}

int enif_select_x(ErlNifEnv *env, ErlNifEvent number, enum ErlNifSelectFlags flags, void *object,
                  const ErlNifPid *pid, ERL_NIF_TERM message, ErlNifEnv *message_env)
{
    struct fake_selected *selected = &fake_selected[number];
    const int direction = (flags & ERL_NIF_SELECT_READ) == 0;

    (void)env;
    (void)message_env;
    pthread_mutex_lock(&fake_selected_lock);
    if (selected->object == NULL) {
        enif_keep_resource(object);
        selected->object = object;
    }
    selected->armed[direction] = 1;
    selected->pid[direction] = *pid;
    memcpy(selected->message[direction], fake_tree(message, FAKE_TUPLE)->elements,
           sizeof *selected->message);
    pthread_mutex_unlock(&fake_selected_lock);
    return 0;
}

/* CANCEL and STOP. */
int enif_select(ErlNifEnv *env, ErlNifEvent number, enum ErlNifSelectFlags flags, void *object,
                const ErlNifPid *pid, ERL_NIF_TERM ref)
{
    struct fake_selected *selected = &fake_selected[number];
    const int direction = (flags & ERL_NIF_SELECT_READ) == 0;
    int done = 0, at_once = 0;

    (void)env;
    (void)pid;
    (void)ref;
    pthread_mutex_lock(&fake_selected_lock);
    if (selected->object == NULL) {
        done = -1;
    } else if ((flags & ERL_NIF_SELECT_STOP) != 0) {
        at_once = fake_stops++ % 2 == 0;
        done = at_once ? ERL_NIF_SELECT_STOP_CALLED : ERL_NIF_SELECT_STOP_SCHEDULED;
        selected->armed[0] = selected->armed[1] = 0;
        selected->stops = !at_once;
        if (at_once)
            selected->object = NULL;
    } else if (selected->armed[direction]) {
        selected->armed[direction] = 0;
        done = direction == 0 ? ERL_NIF_SELECT_READ_CANCELLED : ERL_NIF_SELECT_WRITE_CANCELLED;
    }
    pthread_mutex_unlock(&fake_selected_lock);
    if (at_once)
        fake_stop(object, number, 1);
    return done;
}

void enif_set_pid_undefined(ErlNifPid *pid)
{
    pid->pid = 0;
}

static void fake_tell_ready(struct fake_selected *selected, int number, int direction)
{
    struct pollfd one = {number, direction == 0 ? POLLIN : POLLOUT, 0};
    ErlNifEnv *env;

    if (!selected->armed[direction] || poll(&one, 1, 0) <= 0)
        return;
    selected->armed[direction] = 0;
    env = enif_alloc_env();
    (void)enif_send(NULL, &selected->pid[direction], env,
                    enif_make_tuple_from_array(env, selected->message[direction], 3));
    enif_free_env(env);
}

/* The thread that polls. */
static void *fake_poller(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&fake_select_over, __ATOMIC_SEQ_CST)) {
        for (int number = 0; number < FAKE_NUMBERS; number++) {
            struct fake_selected *selected = &fake_selected[number];
            void *stopped = NULL;

            pthread_mutex_lock(&fake_selected_lock);
            if (selected->object != NULL && selected->stops) {
                stopped = selected->object;
                memset(selected, 0, sizeof *selected);
            }
            fake_tell_ready(selected, number, 0);
            fake_tell_ready(selected, number, 1);
            pthread_mutex_unlock(&fake_selected_lock);
            if (stopped != NULL)
                fake_stop(stopped, number, 0);
        }
        sched_yield();
    }
    return NULL;
}

#endif
