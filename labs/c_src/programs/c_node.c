/* tame_c_node: a C node that gives every term back, on Erlang distribution by ei.
 *
 *     tame_c_node OWN_NODE VM_NODE CREATION
 *
 * reads two lines from standard input:
 *
 *     the cookie
 *     {Pid, Token} in external term format, as hexadecimal text
 *
 * connects to VM_NODE, and sends {tame_peer, Self, Token} to Pid. From then on every message
 * {From, Ref, Term} to Self is answered by {Ref, Term} to From. Term is neither decoded nor copied:
 * the answer is sent from where the message lies, with a new head written over From.
 *
 * One more byte on standard input, or its end, ends the program at once with status 0 (watch.h).
 * Everything else that ends it is one line on standard error and status 1; a wrong command line is
 * status 2.
 *
 * Memory: one buffer, which ei grows to the longest message.
 */
#include <ei.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"
#include "watch.h"

/* For all of the handshake; the VM is on this machine. */
#define CONNECT_MS 10000

/* A pid and a reference, each with a node name of up to 255 characters of up to 4 bytes, and all of
 * it twice as long as text. */
#define HELLO_TEXT_BYTES 8192

/* What ei writes before a message of ours: version, tuple, arity. */
#define REPLY_HEAD_BYTES 3
static const char reply_head[REPLY_HEAD_BYTES] = {(char)131, ERL_SMALL_TUPLE_EXT, 2};

__attribute__((format(printf, 1, 2))) static int failed(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("tame_c_node: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return 1;
}

/* Returns the part after "@", or NULL when it is no full node name or too long for ei. */
static const char *host_of(const char *node)
{
    const char *at = strchr(node, '@');

    if (at == NULL || at == node || at[1] == '\0' || strlen(node) >= MAXNODELEN)
        return NULL;
    return at + 1;
}

/* What ei_connect's answer means, in words. ei says no more than this: a VM that refuses a cookie
 * closes the connection without a word, so EIO after a good address is nearly always that. */
static int connect_failed(const char *vm, int result, int error)
{
    switch (result) {
    case ERL_NO_DAEMON:
    case ERL_NO_PORT:
        return failed("no epmd answers on %s, or it does not know %s", host_of(vm), vm);
    case ERL_CONNECT_FAIL:
        return failed("%s is known to epmd but does not accept connections", vm);
    }

    switch (error) {
    case EHOSTUNREACH:
        return failed("unknown or unreachable host: %s", host_of(vm));
    case EIO:
        return failed("%s refused the handshake: the cookie is not its own", vm);
    case ETIMEDOUT:
        return failed("%s did not complete the handshake within %d ms", vm, CONNECT_MS);
    }
    return failed("cannot connect to %s: %s", vm, strerror(error));
}

/* Returns a connected file descriptor, or -1 after a line that says why. */
static int connect_to(ei_cnode *ec, const char *own, char *vm, const char *cookie,
                      unsigned creation)
{
    char alive[MAXNODELEN];
    struct in_addr address = {0};
    int fd;

    snprintf(alive, sizeof alive, "%.*s", (int)strcspn(own, "@"), own);

    if (ei_connect_xinit(ec, host_of(own), alive, own, &address, cookie, creation) < 0) {
        failed("ei refuses the node name %s or the cookie (errno %d)", own, erl_errno);
        return -1;
    }
    if ((fd = ei_connect_tmo(ec, vm, CONNECT_MS)) < 0) {
        connect_failed(vm, fd, erl_errno);
        return -1;
    }
    return fd;
}

/* hello is {Pid, Token}, size bytes. */
static int send_hello(ei_cnode *ec, int fd, const char *hello, int size)
{
    int pos = 0, version, arity, sent;
    erlang_pid to;
    ei_x_buff out; /* freed below */

    if (ei_decode_version(hello, &pos, &version) < 0 ||
        ei_decode_tuple_header(hello, &pos, &arity) < 0 || arity != 2 ||
        ei_decode_pid(hello, &pos, &to) < 0)
        return -1;

    ei_x_new_with_version(&out);
    ei_x_encode_tuple_header(&out, 3);
    ei_x_encode_atom(&out, "tame_peer");
    ei_x_encode_pid(&out, ei_self(ec));
    ei_x_append_buf(&out, hello + pos, size - pos);
    sent = ei_send(fd, &to, out.buff, out.index);
    ei_x_free(&out);
    return sent;
}

/* Answers one message of size bytes in place. Returns 0, or -1: it is none of ours, or the
 * connection is lost. */
static int answer(int fd, char *message, int size)
{
    int pos = 0, version, arity;
    erlang_pid from;

    if (ei_decode_version(message, &pos, &version) < 0 ||
        ei_decode_tuple_header(message, &pos, &arity) < 0 || arity != 3 ||
        ei_decode_pid(message, &pos, &from) < 0)
        return -1;

    /* Ref and Term lie side by side from pos on, and From is longer than the head. */
    char *reply = message + pos - REPLY_HEAD_BYTES;
    memcpy(reply, reply_head, REPLY_HEAD_BYTES);
    return ei_send(fd, &from, reply, size - pos + REPLY_HEAD_BYTES);
}

/* Echoes until the connection is lost. ei answers the VM's ticks in ei_xreceive_msg. */
static int serve(int fd)
{
    ei_x_buff in; /* never freed: it lives as long as the program */
    erlang_msg message;

    ei_x_new(&in);
    for (;;) {
        in.index = 0;
        switch (ei_xreceive_msg(fd, &message, &in)) {
        case ERL_TICK:
            break;
        case ERL_MSG:
            if (message.msgtype != ERL_SEND)
                break;
            if (answer(fd, in.buff, in.index) < 0)
                return failed("could not answer a message of %d bytes", in.index);
            break;
        default:
            return failed("lost the connection (errno %d)", erl_errno);
        }
    }
}

int main(int argc, char **argv)
{
    static char cookie[EI_MAX_COOKIE_SIZE + 1], hello[HELLO_TEXT_BYTES];
    ei_cnode ec;
    char *end;
    int fd, hello_bytes, error;

    if (argc != 4) {
        failed("%d arguments; expected: OWN_NODE VM_NODE CREATION", argc - 1);
        return 2;
    }
    for (int i = 1; i <= 2; i++) {
        if (host_of(argv[i]) == NULL) {
            failed("not a node name: %s; expected: name@host", argv[i]);
            return 2;
        }
    }
    unsigned long creation = strtoul(argv[3], &end, 10);
    if (*argv[3] == '\0' || *end != '\0' || creation == 0 || creation > UINT32_MAX) {
        failed("not a creation: %s; expected: 1 to 4294967295", argv[3]);
        return 2;
    }

    if (line_read(STDIN_FILENO, cookie, sizeof cookie) < 1)
        return failed("no cookie of 1 to %d bytes on standard input", EI_MAX_COOKIE_SIZE);
    if (line_read(STDIN_FILENO, hello, sizeof hello) < 1 || (hello_bytes = line_unhex(hello)) < 0)
        return failed("no second line on standard input: {Pid, Token} in hexadecimal");

    signal(SIGPIPE, SIG_IGN); /* a lost connection is a return value of ei_send() */
    if ((error = watch_stdin()) != 0)
        return failed("cannot watch standard input: %s", strerror(error));
    if (ei_init() != 0)
        return failed("ei does not start");

    fd = connect_to(&ec, argv[1], argv[2], cookie, (unsigned)creation);
    if (fd < 0)
        return 1;
    if (send_hello(&ec, fd, hello, hello_bytes) < 0)
        return failed("cannot send the hello: it is not {Pid, Token}, or %s is gone", argv[2]);
    return serve(fd);
}
