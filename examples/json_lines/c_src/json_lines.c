/* A job that parses JSON lines: iodata in, a term for each line out, as a stream. Bytes are read, and
 * containers put together, a slice at a time. */
#include "container.h"
#include "token.h"

/* (Iodata) -> the lines' values, as parts */
static enum tame_status init(struct tame_call *call, void *state)
{
    struct parser *p = state;

    if (!tame_input_iodata(call, 0, ROOT_CHUNK, &p->in))
        return tame_badarg(call, 1, "must be iodata");
    p->line = 1;
    return tame_ok(call, TAME_UNKNOWN);
}

static enum tame_status value_begin(struct tame_call *call, struct parser *p, unsigned char byte)
{
    switch (byte) {
    case '"':
        p->done++;
        token_begin(call, p, IN_STRING);
        return TAME_MORE;
    case '[':
    case '{':
        p->done++;
        return parser_open(call, p, byte == '{');
    default:
        if (!in_word(byte) || byte == '+' || byte == '.')
            return parser_fail(call, p, "is no value");
        token_begin(call, p, IN_WORD);
        return TAME_MORE;
    }
}

static enum tame_status key_begin(struct tame_call *call, struct parser *p, unsigned char byte)
{
    if (byte != '"')
        return parser_fail(call, p, "is no key");
    p->is_key = 1;
    return value_begin(call, p, byte);
}

static enum tame_status next_begin(struct tame_call *call, struct parser *p, unsigned char byte)
{
    const int is_map = p->levels[p->depth - 1].is_map;

    if (byte != ',' && byte != (is_map ? '}' : ']'))
        return parser_fail(call, p, is_map ? "expected , or }" : "expected , or ]");
    p->done++;
    if (byte == ',')
        p->where = is_map ? AT_KEY : AT_VALUE;
    else
        container_close(call, p);
    return TAME_MORE;
}

/* The line's value goes to the caller. */
static enum tame_status line_emit(struct tame_call *call, struct parser *p)
{
    p->where = AT_VALUE;
    return tame_emit(call, parser_pop(call));
}

static enum tame_status newline(struct tame_call *call, struct parser *p)
{
    if (p->depth > 0)
        return parser_fail(call, p, "the line ends within a list or a map");
    p->done++;
    p->line++;
    p->line_at = p->before + p->done;
    return p->where == AT_LINE_END ? line_emit(call, p) : TAME_MORE;
}

/* Between tokens: one byte. */
static enum tame_status structure_step(struct tame_call *call, struct parser *p)
{
    const unsigned char byte = p->in.data[p->done];

    switch (byte) {
    case ' ':
    case '\t':
    case '\r':
        p->done++;
        return TAME_MORE;
    case '\n':
        return newline(call, p);
    }
    switch (p->where) {
    case AT_FIRST_VALUE:
    case AT_FIRST_KEY:
        if (byte == (p->where == AT_FIRST_KEY ? '}' : ']')) {
            p->done++;
            container_close(call, p);
            return TAME_MORE;
        }
        return p->where == AT_FIRST_KEY ? key_begin(call, p, byte) : value_begin(call, p, byte);
    case AT_KEY:
        return key_begin(call, p, byte);
    case AT_COLON:
        if (byte != ':')
            return parser_fail(call, p, "expected :");
        p->done++;
        p->where = AT_VALUE;
        return TAME_MORE;
    case AT_NEXT:
        return next_begin(call, p, byte);
    case AT_LINE_END:
        return parser_fail(call, p, "expected the end of the line");
    default:
        return value_begin(call, p, byte);
    }
}

/* There is no more input. */
static enum tame_status end(struct tame_call *call, struct parser *p)
{
    if (p->where == IN_WORD && word_end(call, p) == TAME_FAILED)
        return TAME_FAILED;
    if (p->where == AT_LINE_END)
        return line_emit(call, p);
    if (p->where == AT_VALUE && p->depth == 0)
        return TAME_DONE;
    return parser_fail(call, p, "the input ends within a value");
}

/* To the next chunk. What the token at hand has in this one is saved first. */
static enum tame_status chunk_next(struct tame_call *call, struct parser *p, size_t *units)
{
    int more;

    if (p->where == IN_STRING && p->from < p->done)
        return token_save(call, p, units) == TOKEN_WRONG ? TAME_FAILED : TAME_MORE;
    more = tame_iodata_next(call, &p->in);
    if (more < 0)
        return tame_badarg(call, 1, "must be iodata");
    if (more == 0)
        return end(call, p);
    p->before += p->done;
    p->done = p->from = 0;
    return TAME_MORE;
}

/* A unit is a byte, or what takes as long. */
static enum tame_status step(struct tame_call *call, void *state, size_t units)
{
    struct parser *p = state;
    enum tame_status status = TAME_MORE;

    while (status == TAME_MORE && units > 0) {
        switch (p->where) {
        case IN_LIST:
            units = list_gather(call, p, units);
            continue;
        case IN_MAP:
            units = map_gather(call, p, units);
            continue;
        case AT_STRING_END:
            status = text_end(call, p, &units);
            continue;
        default:
            break;
        }
        if (p->done == p->in.size) {
            status = chunk_next(call, p, &units);
            units = spent(units, CHUNK_UNITS);
            continue;
        }
        switch (p->where) {
        case IN_STRING:
            status = string_step(call, p, &units);
            continue;
        case IN_WORD:
            status = word_step(call, p, &units);
            continue;
        case IN_ESCAPE:
            status = escape_step(call, p);
            break;
        case IN_HEX:
            status = hex_step(call, p);
            break;
        default:
            status = structure_step(call, p);
        }
        units = units > 0 ? units - 1 : 0;
    }
    return status;
}

static ERL_NIF_TERM result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "ok"); /* a stream's end; nobody sees it */
}

static void cleanup(void *state)
{
    struct parser *p = state;

    free(p->levels); /* NULL is nothing to free */
    tame_output_free(&p->text);
}

static const struct tame_job lines = {.state_size = sizeof(struct parser),
                                      .init = init,
                                      .step = step,
                                      .result = result,
                                      .cleanup = cleanup,
                                      .terms = 1};

#define FUNCTIONS(JOB, NIF) JOB(parse_nif, 1, lines, TAME_AUTO)
TAME_NIF_INIT(json_lines, FUNCTIONS)
