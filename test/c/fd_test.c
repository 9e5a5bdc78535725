/* tame/fd.h and tame/watch.h, called from many threads without a VM, for the sanitizers. Processes are killed,
 * owners change and descriptors are closed while others wait: each number is closed once, and nothing is left. */
#include "fake_select.h"
#include <tame/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "check.h"

#define THREADS 4
#define TOLD_NS UINT64_C(60000000000) /* a message that comes in any case */

struct line {
    struct tame_fd fd;
    int turns[2]; /* counted by the caller whose turn it is; two at once are a race */
};

static int closed, destroyed, not_told; /* atomic */

static void close_line(struct tame_fd *fd, int number)
{
    (void)fd;
    __atomic_add_fetch(&closed, 1, __ATOMIC_SEQ_CST);
    (void)close(number);
}

static void destroy_line(struct tame_fd *fd)
{
    (void)fd;
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static struct tame_fd_type lines;
TAME_FD(lines, struct line, .close = close_line, .destroy = destroy_line)

static pthread_t destroyer, poller;

static void begin(void)
{
    ErlNifEnv *env = enif_alloc_env();

    closed = destroyed = not_told = fake_over = fake_select_over = 0;
    CHECK_EQ(tame_fd_load(env, &lines), 0);
    enif_free_env(env);
    fake_select_callbacks = &lines.impl_callbacks;
    CHECK_EQ(pthread_create(&destroyer, NULL, fake_destroyer, NULL), 0);
    CHECK_EQ(pthread_create(&poller, NULL, fake_poller, NULL), 0);
}

/* Ten seconds at most. */
static void end(int opened)
{
    for (int tries = 0; tries < 10000; tries++) {
        if (__atomic_load_n(&fake_resources, __ATOMIC_SEQ_CST) == 0)
            break;
        usleep(1000);
    }
    __atomic_store_n(&fake_select_over, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(pthread_join(poller, NULL), 0);
    pthread_mutex_lock(&fake_resources_lock);
    fake_over = 1;
    pthread_cond_signal(&fake_doomed_came);
    pthread_mutex_unlock(&fake_resources_lock);
    CHECK_EQ(pthread_join(destroyer, NULL), 0);
    CHECK_EQ(closed, opened);
    CHECK_EQ(destroyed, opened);
    CHECK_EQ(not_told, 0);
    CHECK_EQ(fake_resources, 0);
    CHECK_EQ(fake_envs, 0);
}

static void die(struct fake_process *process)
{
    fake_kill(process);
    (void)fake_looks(process, 0);
}

/* ---- one process is given the descriptors of all ---- */

#define GIFTS 400

static void *give(void *taker)
{
    const ErlNifPid to = {(ERL_NIF_TERM)taker};

    fake_on_scheduler = 1;
    for (int i = 0; i < GIFTS; i++) {
        struct fake_process *giver = fake_process_begin();
        const ErlNifPid from = {(ERL_NIF_TERM)giver};
        ErlNifEnv *env = enif_alloc_env();
        struct line *line = tame_fd_new(env, &lines, open("/dev/null", O_RDWR), &from);

        if (tame_fd_give(env, &line->fd, &from, &to) != TAME_FD_DONE)
            abort();
        if (i % 4 != 0) /* else its owner's end closes it */
            (void)tame_fd_close(env, &line->fd, NULL, 0);
        enif_release_resource(line);
        die(giver);
        enif_free_env(env);
    }
    return NULL;
}

static void descriptors_are_given_to_one_process_at_the_same_time(void)
{
    pthread_t threads[THREADS];
    struct fake_process *taker = fake_process_begin();

    begin();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, give, taker), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    die(taker);
    end(THREADS * GIFTS);
}

/* ---- many processes use one descriptor ---- */

#define ROUNDS 30
#define PROCESSES 10 /* one after the other, of each thread */
#define CALLS 12

struct caller {
    unsigned seed;
    pthread_mutex_t lock;
    struct fake_process *process; /* guarded by the lock: who kills it may do so while it calls */
    struct line *line;
};

static int round_over;    /* atomic */
static uint64_t last_ref; /* atomic */

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % below;
}

static ERL_NIF_TERM new_ref(void)
{
    return FAKE_TERM(FAKE_REF, __atomic_add_fetch(&last_ref, 1, __ATOMIC_RELAXED));
}

/* A message that was promised. */
static void receive(struct fake_process *process, ERL_NIF_TERM ref)
{
    if (!fake_receive(process, ref, TOLD_NS) && !fake_looks(process, 0))
        __atomic_add_fetch(&not_told, 1, __ATOMIC_SEQ_CST);
}

/* Reads or writes, when it is its turn; what it waits for, or not. */
static enum tame_fd_answer transfer(struct caller *caller, ErlNifEnv *env,
                                    enum tame_fd_direction direction, ERL_NIF_TERM ref)
{
    struct tame_fd *fd = &caller->line->fd;
    const ErlNifPid self = {(ERL_NIF_TERM)caller->process};
    enum tame_fd_answer answer = tame_fd_begin(env, fd, direction, &self, ref);
    char bytes[] = "tame";
    ssize_t n;

    if (answer != TAME_FD_GO)
        return answer;
    caller->line->turns[direction]++;
    n = direction == TAME_FD_READ ? read(tame_fd_number(fd), bytes, sizeof bytes)
                                  : write(tame_fd_number(fd), bytes, sizeof bytes);
    switch (draw(&caller->seed, 4)) {
    case 0:
        return tame_fd_again(env, fd, direction, &self, ref);
    case 1:
        return tame_fd_wait(env, fd, direction, &self, ref);
    default:
        if (n < 0 && errno == EAGAIN)
            return tame_fd_wait(env, fd, direction, &self, ref);
        tame_fd_done(env, fd, direction);
        return TAME_FD_DONE;
    }
}

static void take_over(struct caller *caller, ErlNifEnv *env)
{
    const ErlNifPid self = {(ERL_NIF_TERM)caller->process};
    ErlNifPid owner;

    if (tame_fd_owner(&caller->line->fd, &owner))
        (void)tame_fd_give(env, &caller->line->fd, &owner, &self);
}

/* One call, and the wait that it may begin: for a message, or until that is taken back. */
static void call(struct caller *caller, ErlNifEnv *env)
{
    struct tame_fd *fd = &caller->line->fd;
    const ErlNifPid self = {(ERL_NIF_TERM)caller->process};
    const enum tame_fd_direction direction =
        draw(&caller->seed, 2) == 0 ? TAME_FD_READ : TAME_FD_WRITE;
    const ERL_NIF_TERM ref = new_ref();

    switch (draw(&caller->seed, 50)) {
    case 0:
        take_over(caller, env);
        return;
    case 1:
    case 2:
        tame_fd_wake(env, fd, direction);
        return;
    case 3:
    case 4:
        if (tame_fd_use(fd) >= 0)
            tame_fd_unuse(env, fd);
        return;
    default:
        break;
    }
    if (transfer(caller, env, direction, ref) == TAME_FD_WAIT &&
        !fake_receive(caller->process, ref, draw(&caller->seed, 400) * UINT64_C(1000)) &&
        !fake_looks(caller->process, 0) &&
        tame_fd_cancel(env, fd, direction, &self) == TAME_FD_SENT)
        receive(caller->process, ref);
}

static void *use(void *arg)
{
    struct caller *caller = arg;

    fake_on_scheduler = 1;
    for (int i = 0; i < PROCESSES; i++) {
        struct fake_process *process = fake_process_begin();
        ErlNifEnv *env = enif_alloc_env();

        env->process = process;
        pthread_mutex_lock(&caller->lock);
        caller->process = process;
        pthread_mutex_unlock(&caller->lock);
        for (int j = 0; j < CALLS && !fake_looks(process, 0); j++)
            call(caller, env);
        die(process);
        enif_free_env(env);
    }
    return NULL;
}

static void *kill_some(void *callers)
{
    unsigned seed = 5;

    while (!__atomic_load_n(&round_over, __ATOMIC_SEQ_CST)) {
        struct caller *caller = (struct caller *)callers + draw(&seed, THREADS);

        usleep(draw(&seed, 2000));
        pthread_mutex_lock(&caller->lock);
        if (caller->process != NULL)
            fake_kill(caller->process);
        pthread_mutex_unlock(&caller->lock);
    }
    return NULL;
}

static void *feed(void *number)
{
    char bytes[64];

    while (!__atomic_load_n(&round_over, __ATOMIC_SEQ_CST)) {
        (void)!write(*(int *)number, "y", 1);
        (void)!read(*(int *)number, bytes, sizeof bytes);
        usleep(50);
    }
    return NULL;
}

/* The owner ends, or the descriptor is closed, meanwhile. */
static void one_round(ErlNifEnv *env, unsigned round)
{
    struct fake_process *owner = fake_process_begin();
    const ErlNifPid owner_pid = {(ERL_NIF_TERM)owner};
    struct caller callers[THREADS];
    pthread_t threads[THREADS], killer, feeder;
    struct line *line;
    int ends[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(fcntl(ends[i], F_SETFL, O_NONBLOCK), 0);
    line = tame_fd_new(env, &lines, ends[0], &owner_pid);
    __atomic_store_n(&round_over, 0, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.seed = round * 31 + i, .line = line};
        pthread_mutex_init(&callers[i].lock, NULL);
        CHECK_EQ(pthread_create(&threads[i], NULL, use, &callers[i]), 0);
    }
    CHECK_EQ(pthread_create(&killer, NULL, kill_some, callers), 0);
    CHECK_EQ(pthread_create(&feeder, NULL, feed, &ends[1]), 0);
    usleep(3000);
    if (round % 3 == 1)
        die(owner);
    else if (round % 3 == 2)
        (void)tame_fd_close(env, &line->fd, NULL, 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    __atomic_store_n(&round_over, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(pthread_join(killer, NULL), 0);
    CHECK_EQ(pthread_join(feeder, NULL), 0);
    die(owner);
    enif_release_resource(line);
    (void)close(ends[1]);
}

static void processes_that_are_killed_leave_a_descriptor_to_the_others(void)
{
    ErlNifEnv *env;

    begin();
    env = enif_alloc_env();
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round(env, round);
    enif_free_env(env);
    end(ROUNDS);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    RUN(descriptors_are_given_to_one_process_at_the_same_time);
    RUN(processes_that_are_killed_leave_a_descriptor_to_the_others);
    return check_report();
}
