/* Questions to the VM, see ask.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/name.h"
#include "port/ask.h"
#include "port/etf_cursor.h"
#include "port/port.h"

struct question {
    struct question *next;
    uint64_t id;
    int answered;
    unsigned char *answer; /* external format; freed by who asked */
    size_t size;
    pthread_cond_t changed;
};

/* The questions under way, each on the stack of its thread. */
static struct {
    pthread_mutex_t lock;
    struct question *first;
    uint64_t last_id;
} asked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add(struct question *question)
{
    pthread_mutex_lock(&asked.lock);
    question->id = ++asked.last_id;
    question->next = asked.first;
    asked.first = question;
    pthread_mutex_unlock(&asked.lock);
}

static void await_answer(struct question *question)
{
    struct question **at = &asked.first;

    pthread_mutex_lock(&asked.lock);
    while (!question->answered)
        pthread_cond_wait(&question->changed, &asked.lock);
    for (at = &asked.first; *at != question; at = &(*at)->next) {
    }
    *at = question->next;
    pthread_mutex_unlock(&asked.lock);
}

void ask_answered(uint64_t id, const unsigned char *answer, size_t size)
{
    pthread_mutex_lock(&asked.lock);
    for (struct question *question = asked.first; question != NULL; question = question->next) {
        if (question->id == id && !question->answered) {
            question->answer = host_malloc(size + 1);
            memcpy(question->answer, answer, size);
            question->size = size;
            question->answered = 1;
            pthread_cond_signal(&question->changed);
            break;
        }
    }
    pthread_mutex_unlock(&asked.lock);
}

/* ---- in external format --------------------------------------------------------------- */

static unsigned char *put_atom(unsigned char *to, const char *name)
{
    size_t len = strlen(name);

    *to++ = ETF_SMALL_ATOM_UTF8;
    *to++ = (unsigned char)len;
    memcpy(to, name, len);
    return to + len;
}

/* {query, Id, Question} up to the question. Returns its size. */
static size_t put_head(unsigned char *head, uint64_t id)
{
    unsigned char *to = head, *len;

    *to++ = ETF_VERSION;
    *to++ = ETF_SMALL_TUPLE;
    *to++ = 3;
    to = put_atom(to, "query");
    *to++ = ETF_SMALL_BIG;
    len = to++;
    *to++ = 0; /* its sign */
    for (*len = 0; id != 0; id >>= 8, ++*len)
        *to++ = (unsigned char)id;
    return (size_t)(to - head);
}

unsigned char *ask(unsigned char *room, size_t size, size_t *answer_size)
{
    struct question question = {.changed = PTHREAD_COND_INITIALIZER};
    unsigned char head[ASK_HEAD_BYTES], *frame;

    if (port.out < 0)
        return NULL;
    add(&question);
    size_t head_size = put_head(head, question.id);
    frame = room + ASK_HEAD_BYTES - head_size - PORT_LENGTH_BYTES;
    memcpy(frame + PORT_LENGTH_BYTES, head, head_size);
    port_write(frame, PORT_LENGTH_BYTES + head_size + size);
    await_answer(&question);
    *answer_size = question.size;
    return question.answer;
}

/* ---- questions of yes and no ---------------------------------------------------------- */

static int is_yes(const unsigned char *answer, size_t size)
{
    struct etf_cursor cursor = {answer, answer + size, 0};
    unsigned char buffer[2 * ATOM_CHARS_MAX];
    size_t name_size;
    const unsigned char *name = etf_atom(&cursor, buffer, &name_size);

    return name != NULL && ((name_size == 4 && memcmp(name, "true", 4) == 0) ||
                            (name_size == 2 && memcmp(name, "ok", 2) == 0));
}

static int ask_yes(unsigned char *room, size_t size)
{
    size_t answer_size;
    unsigned char *answer = ask(room, size, &answer_size);
    int yes = answer != NULL && is_yes(answer, answer_size);

    free(answer);
    return yes;
}

int ask_word(const char *word)
{
    unsigned char room[ASK_HEAD_BYTES + 2 + ATOM_CHARS_MAX];

    return ask_yes(room, (size_t)(put_atom(room + ASK_HEAD_BYTES, word) - room) - ASK_HEAD_BYTES);
}

int ask_name(const char *word, const unsigned char *name, size_t size)
{
    unsigned char room[ASK_HEAD_BYTES + 2 + 2 + ATOM_CHARS_MAX + 5 + ATOM_BYTES_MAX];
    unsigned char *to = room + ASK_HEAD_BYTES;

    *to++ = ETF_SMALL_TUPLE;
    *to++ = 2;
    to = put_atom(to, word);
    *to++ = ETF_BINARY;
    for (int shift = 24; shift >= 0; shift -= 8)
        *to++ = (unsigned char)(size >> shift);
    memcpy(to, name, size);
    return ask_yes(room, (size_t)(to + size - room) - ASK_HEAD_BYTES);
}
