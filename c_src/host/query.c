/* Questions to the VM, see query.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "control.h"
#include "env.h"
#include "etf.h"
#include "host.h"
#include "query.h"

struct query {
    struct query *next;
    uint64_t id;
    int answered;
    unsigned char *answer; /* external format; freed by who asked */
    size_t size;
    pthread_cond_t changed;
};

static void add_query(struct query *query)
{
    pthread_mutex_lock(&host.queries.lock);
    query->id = ++host.queries.last_id;
    query->next = host.queries.first;
    host.queries.first = query;
    pthread_mutex_unlock(&host.queries.lock);
}

static void await_answer(struct query *query)
{
    struct query **at = &host.queries.first;

    pthread_mutex_lock(&host.queries.lock);
    while (!query->answered)
        pthread_cond_wait(&query->changed, &host.queries.lock);
    for (at = &host.queries.first; *at != query; at = &(*at)->next) {
    }
    *at = query->next;
    pthread_mutex_unlock(&host.queries.lock);
}

void query_answered(uint64_t id, const unsigned char *answer, size_t size)
{
    pthread_mutex_lock(&host.queries.lock);
    for (struct query *query = host.queries.first; query != NULL; query = query->next) {
        if (query->id == id && !query->answered) {
            query->answer = host_malloc(size + 1);
            memcpy(query->answer, answer, size);
            query->size = size;
            query->answered = 1;
            pthread_cond_signal(&query->changed);
            break;
        }
    }
    pthread_mutex_unlock(&host.queries.lock);
}

term query_ask(ErlNifEnv *env, term what)
{
    struct query query = {.changed = PTHREAD_COND_INITIALIZER};
    term answer;

    if (host.control.out < 0)
        return TERM_NONE;
    add_query(&query);
    control_query(query.id, what);
    await_answer(&query);
    if (etf_read(env, query.answer, query.size, ETF_TRUSTED, &answer) != query.size)
        host_die("the VM's answer to a query is not a term");
    free(query.answer);
    return answer;
}

int query_is_true(term what)
{
    ErlNifEnv env;

    env_init(&env, ENV_INDEPENDENT);
    term answer = query_ask(&env, what);
    env_destroy(&env);
    return answer == ATOM(true) || answer == ATOM(ok);
}

term query_term(ErlNifEnv *env, const char *name, unsigned count, ...)
{
    term *elements, tuple = term_new_tuple(env, count + 1, &elements);
    va_list args;

    elements[0] = atom_make((const unsigned char *)name, strlen(name), 1);
    va_start(args, count);
    for (unsigned i = 1; i <= count; i++)
        elements[i] = va_arg(args, term);
    va_end(args);
    return tuple;
}

/* The name goes as a binary: an atom would make it exist. */
int query_existing_atom(const unsigned char *utf8, size_t size)
{
    ErlNifEnv env;
    int exists;

    env_init(&env, ENV_INDEPENDENT);
    exists =
        query_is_true(query_term(&env, "existing_atom", 1, term_binary(&env, utf8, size, 0, NULL)));
    env_destroy(&env);
    return exists;
}
