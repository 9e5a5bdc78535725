/* Frames and their echo (c_src/programs/frame.h, stream.h) and lines (line.h), without a VM. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "../../test/c/check.h"
#include "line.h"
#include "stream.h"

/* Three frames of 1, 300 and 5 bytes. Returns the size of all. */
static size_t put_three_frames(unsigned char *bytes)
{
    const size_t lengths[] = {1, 300, 5};
    size_t pos = 0;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        bytes[pos++] = 0;
        bytes[pos++] = 0;
        bytes[pos++] = (unsigned char)(lengths[i] >> 8);
        bytes[pos++] = (unsigned char)lengths[i];
        for (size_t j = 0; j < lengths[i]; j++)
            bytes[pos++] = (unsigned char)(i + j);
    }
    return pos;
}

static void a_length_is_big_endian(void)
{
    CHECK_EQ(frame_length((const unsigned char[]){0x12, 0x34, 0x56, 0x78}), 0x12345678);
    CHECK_EQ(frame_length((const unsigned char[]){0xff, 0xff, 0xff, 0xff}), 0xffffffff);
}

static void whole_frames_go_out_at_once(void)
{
    unsigned char bytes[400];
    size_t size = put_three_frames(bytes);
    struct frame_scan scan = {0};
    enum frame_verdict verdict;

    CHECK_EQ(frame_scan(&scan, bytes, size, &verdict), size);
    CHECK_EQ(verdict, FRAME_GO_ON);
    CHECK_EQ(scan.left_bytes, 0);
}

static void any_cut_in_two_gives_the_same_bytes(void)
{
    unsigned char bytes[400];
    size_t size = put_three_frames(bytes);

    for (size_t cut = 0; cut <= size; cut++) {
        struct frame_scan scan = {0};
        enum frame_verdict verdict;
        size_t first = frame_scan(&scan, bytes, cut, &verdict);

        CHECK_EQ(verdict, FRAME_GO_ON);
        CHECK_EQ(first <= cut && cut - first < FRAME_HEADER_BYTES, 1);
        CHECK_EQ(frame_scan(&scan, bytes + first, size - first, &verdict), size - first);
        CHECK_EQ(verdict, FRAME_GO_ON);
        CHECK_EQ(scan.left_bytes, 0);
    }
}

static void the_start_of_a_long_frame_does_not_wait_for_its_end(void)
{
    const unsigned char bytes[] = {0, 1, 0, 0, 'a', 'b'};
    struct frame_scan scan = {0};
    enum frame_verdict verdict;

    CHECK_EQ(frame_scan(&scan, bytes, sizeof bytes, &verdict), sizeof bytes);
    CHECK_EQ(scan.left_bytes, 65536 - 2);
}

static void a_part_of_a_header_is_kept_back(void)
{
    const unsigned char bytes[FRAME_HEADER_BYTES] = {0, 0, 0, 1};
    struct frame_scan scan = {0};
    enum frame_verdict verdict;

    for (size_t size = 0; size < FRAME_HEADER_BYTES; size++) {
        CHECK_EQ(frame_scan(&scan, bytes, size, &verdict), 0);
        CHECK_EQ(verdict, FRAME_GO_ON);
    }
}

static void an_empty_frame_is_the_goodbye_and_does_not_go_out(void)
{
    const unsigned char bytes[] = {0, 0, 0, 1, 'x', 0, 0, 0, 0, 9, 9};
    struct frame_scan scan = {0};
    enum frame_verdict verdict;

    CHECK_EQ(frame_scan(&scan, bytes, sizeof bytes, &verdict), 5);
    CHECK_EQ(verdict, FRAME_GOODBYE);
}

static void the_longest_frame_is_taken_and_one_byte_more_refused(void)
{
    const unsigned char longest[] = {0x40, 0, 0, 0};
    const unsigned char longer[] = {0x40, 0, 0, 1};
    struct frame_scan scan = {0};
    enum frame_verdict verdict;

    CHECK_EQ(frame_scan(&scan, longest, sizeof longest, &verdict), 4);
    CHECK_EQ(verdict, FRAME_GO_ON);
    CHECK_EQ(scan.left_bytes, FRAME_MAX_BYTES);

    scan = (struct frame_scan){0};
    CHECK_EQ(frame_scan(&scan, longer, sizeof longer, &verdict), 0);
    CHECK_EQ(verdict, FRAME_TOO_LONG);
    CHECK_EQ(scan.refused_bytes, FRAME_MAX_BYTES + 1);
}

/* ---- the echo, through pipes ---------------------------------------------------------- */

struct sender {
    int fd;
    const unsigned char *bytes;
    size_t size;
};

/* Sends all, then closes. */
static void *send_main(void *arg)
{
    struct sender *sender = arg;

    stream_write_all(sender->fd, sender->bytes, sender->size);
    close(sender->fd);
    return NULL;
}

struct echoer {
    int in, out;
    size_t buffer_bytes;
    struct frame_scan scan;
    enum stream_end end;
};

static void *echo_main(void *arg)
{
    struct echoer *echoer = arg;
    unsigned char *buffer = malloc(echoer->buffer_bytes); /* freed below */

    echoer->end = stream_echo(echoer->in, echoer->out, &echoer->scan, buffer, echoer->buffer_bytes);
    free(buffer);
    close(echoer->out);
    return NULL;
}

/* Sends bytes through an echo with a buffer of buffer_bytes; reads what comes back into back,
 * which must hold as much. Returns how many came; *end says why the echo ended. */
static size_t through_echo(const unsigned char *bytes, size_t size, size_t buffer_bytes,
                           unsigned char *back, enum stream_end *end)
{
    int there[2], here[2];
    pthread_t send_thread, echo_thread;
    size_t got = 0;
    ssize_t n;

    CHECK_EQ(pipe(there) | pipe(here), 0);
    struct sender sender = {there[1], bytes, size};
    struct echoer echoer = {there[0], here[1], buffer_bytes, {0}, STREAM_ERROR};

    pthread_create(&send_thread, NULL, send_main, &sender);
    pthread_create(&echo_thread, NULL, echo_main, &echoer);
    while ((n = read(here[0], back + got, size - got + 1)) > 0)
        got += (size_t)n;
    pthread_join(echo_thread, NULL);
    close(there[0]); /* only now: a sender that is still writing gets its EPIPE */
    pthread_join(send_thread, NULL);
    close(here[0]);
    *end = echoer.end;
    return got;
}

static void every_buffer_size_echoes_the_same(void)
{
    unsigned char bytes[400], back[401];
    size_t size = put_three_frames(bytes);

    for (size_t buffer_bytes = FRAME_HEADER_BYTES + 1; buffer_bytes <= size + 1; buffer_bytes++) {
        enum stream_end end;

        CHECK_EQ(through_echo(bytes, size, buffer_bytes, back, &end), size);
        CHECK_EQ(end, STREAM_EOF);
        CHECK_EQ(memcmp(bytes, back, size), 0);
    }
}

static void a_frame_far_above_the_pipe_comes_back_whole(void)
{
    const size_t length = 5u << 20, size = FRAME_HEADER_BYTES + length;
    unsigned char *bytes = malloc(size), *back = malloc(size + 1); /* freed below */
    enum stream_end end;

    bytes[0] = 0;
    bytes[1] = 5 << 4;
    bytes[2] = bytes[3] = 0;
    for (size_t i = FRAME_HEADER_BYTES; i < size; i++)
        bytes[i] = (unsigned char)(i * 31 >> 3);
    CHECK_EQ(frame_length(bytes), length);
    CHECK_EQ(through_echo(bytes, size, STREAM_BUFFER_BYTES, back, &end), size);
    CHECK_EQ(end, STREAM_EOF);
    CHECK_EQ(memcmp(bytes, back, size), 0);
    free(bytes);
    free(back);
}

static void what_came_before_the_goodbye_is_echoed(void)
{
    const unsigned char bytes[] = {0, 0, 0, 2, 'a', 'b', 0, 0, 0, 0};
    unsigned char back[sizeof bytes + 1];
    enum stream_end end;

    CHECK_EQ(through_echo(bytes, sizeof bytes, 64, back, &end), 6);
    CHECK_EQ(end, STREAM_GOODBYE);
}

static void text_in_place_of_a_frame_is_refused(void)
{
    const unsigned char bytes[] = "GET / HTTP/1.1";
    unsigned char back[sizeof bytes + 1];
    enum stream_end end;

    CHECK_EQ(through_echo(bytes, sizeof bytes, 64, back, &end), 0);
    CHECK_EQ(end, STREAM_TOO_LONG);
}

static void a_reader_that_is_gone_ends_the_echo(void)
{
    const unsigned char bytes[] = {0, 0, 0, 1, 'x'};
    unsigned char buffer[64];
    struct frame_scan scan = {0};
    int there[2], here[2];

    CHECK_EQ(pipe(there) | pipe(here), 0);
    close(here[0]);
    CHECK_EQ(stream_write_all(there[1], bytes, sizeof bytes), 0);
    CHECK_EQ(stream_echo(there[0], here[1], &scan, buffer, sizeof buffer), STREAM_READER_GONE);
    close(there[0]);
    close(there[1]);
    close(here[1]);
}

/* ---- lines ------------------------------------------------------------------------------ */

/* Reads one line of a pipe that holds text and is then closed. */
static int line_of(const char *text, char *line, size_t size)
{
    int fds[2];

    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(stream_write_all(fds[1], (const unsigned char *)text, strlen(text)), 0);
    close(fds[1]);
    int result = line_read(fds[0], line, size);
    close(fds[0]);
    return result;
}

static void a_line_ends_at_its_newline(void)
{
    char line[16];

    CHECK_EQ(line_of("cookie\nrest\n", line, sizeof line), 6);
    CHECK_EQ(strcmp(line, "cookie"), 0);
    CHECK_EQ(line_of("\n", line, sizeof line), 0);
    CHECK_EQ(strcmp(line, ""), 0);
}

static void a_line_that_does_not_fit_or_has_no_end_is_refused(void)
{
    char line[4];

    CHECK_EQ(line_of("abc\n", line, sizeof line), 3);
    CHECK_EQ(line_of("abcd\n", line, sizeof line), -1);
    CHECK_EQ(line_of("abc", line, sizeof line), -1);
    CHECK_EQ(line_of("", line, sizeof line), -1);
}

static void hex_becomes_bytes_in_place(void)
{
    char text[] = "0083fFA0";

    CHECK_EQ(line_unhex(text), 4);
    CHECK_EQ(memcmp(text, "\x00\x83\xff\xa0", 4), 0);
}

static void what_is_not_hex_is_refused(void)
{
    char odd[] = "008", other[] = "0g", space[] = "0 ";

    CHECK_EQ(line_unhex(odd), -1);
    CHECK_EQ(line_unhex(other), -1);
    CHECK_EQ(line_unhex(space), -1);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(a_length_is_big_endian);
    RUN(whole_frames_go_out_at_once);
    RUN(any_cut_in_two_gives_the_same_bytes);
    RUN(the_start_of_a_long_frame_does_not_wait_for_its_end);
    RUN(a_part_of_a_header_is_kept_back);
    RUN(an_empty_frame_is_the_goodbye_and_does_not_go_out);
    RUN(the_longest_frame_is_taken_and_one_byte_more_refused);
    RUN(every_buffer_size_echoes_the_same);
    RUN(a_frame_far_above_the_pipe_comes_back_whole);
    RUN(what_came_before_the_goodbye_is_echoed);
    RUN(text_in_place_of_a_frame_is_refused);
    RUN(a_reader_that_is_gone_ends_the_echo);
    RUN(a_line_ends_at_its_newline);
    RUN(a_line_that_does_not_fit_or_has_no_end_is_refused);
    RUN(hex_becomes_bytes_in_place);
    RUN(what_is_not_hex_is_refused);
    return check_report();
}
