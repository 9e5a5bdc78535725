/* A job that checks UTF-8 (RFC 3629, section 4: the syntax of its byte sequences), a slice at a
 * time. */
#include <tame.h>

/* The length of the sequence that starts at text, or 0 where it is none. */
static size_t sequence(const unsigned char *text, size_t left)
{
    unsigned char lead = text[0], low = 0x80, high = 0xBF;
    size_t len;

    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        len = 2;
    else if ((lead & 0xF0) == 0xE0)
        len = 3;
    else if (lead >= 0xF0 && lead <= 0xF4)
        len = 4;
    else
        return 0;

    /* The second byte is narrower after these, so that nothing has two spellings. */
    if (lead == 0xE0)
        low = 0xA0;
    if (lead == 0xED)
        high = 0x9F;
    if (lead == 0xF0)
        low = 0x90;
    if (lead == 0xF4)
        high = 0x8F;

    if (left < len || text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

struct utf8 {
    struct tame_input text;
    size_t done; /* bytes */
    int is_text;
};

static enum tame_status init(struct tame_call *call, void *state)
{
    struct utf8 *x = state;

    if (!tame_input_binary(call, 0, &x->text))
        return tame_badarg(call, 1, "must be a binary");
    x->is_text = 1;
    return tame_ok(call, x->text.size);
}

/* A unit is a byte. The sequence that crosses the last one is read to its end. */
static enum tame_status step(struct tame_call *call, void *state, size_t units)
{
    struct utf8 *x = state;
    const size_t left = x->text.size - x->done;
    const size_t end = x->done + (units < left ? units : left);

    (void)call;
    while (x->done < end) {
        const size_t len = sequence(x->text.data + x->done, x->text.size - x->done);

        if (len == 0) {
            x->is_text = 0;
            return TAME_DONE;
        }
        x->done += len;
    }
    return x->done == x->text.size ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM result(struct tame_call *call, void *state)
{
    return enif_make_atom(call->env, ((struct utf8 *)state)->is_text ? "true" : "false");
}

static const struct tame_job utf8 = {
    .state_size = sizeof(struct utf8), .init = init, .step = step, .result = result};

#define FUNCTIONS(JOB, NIF) JOB(valid_nif, 1, utf8, TAME_AUTO)
TAME_NIF_INIT(utf8, FUNCTIONS)
