/* What the load lab's generator reads of a server (labs/c_src/programs/load/answer.h), and when its
 * requests are planned (plan.h), without a server. */
#include <stdlib.h>

#include "../../test/c/check.h"
#include "connection.h"

static const char h1_two[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nserver: x\r\n\r\nhello"
    "HTTP/1.1 503 Busy\r\ncontent-length:4\r\nConnection: close\r\n\r\nbusy";

/* A copy on the heap, whose end the address sanitizer watches. */
static struct answer h1(const char *text, size_t size)
{
    unsigned char *copy = malloc(size + 1);
    struct answer answer;

    memcpy(copy, text, size);
    answer = h1_answer(copy, size);
    free(copy);
    return answer;
}

static struct answer h2(const unsigned char *bytes, size_t size)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);
    struct answer answer;

    memcpy(copy, bytes, size);
    answer = h2_answer(copy, size);
    free(copy);
    return answer;
}

static void an_answer_has_its_status_and_its_length(void)
{
    struct answer answer = h1(h1_two, sizeof h1_two - 1);

    CHECK_EQ(answer.kind, ANSWER_DONE);
    CHECK_EQ(answer.status, 200);
    CHECK_EQ(answer.body_bytes, 5);
    CHECK_EQ(answer.close, 0);
    answer = h1(h1_two + answer.used + 5, sizeof h1_two - 1 - answer.used - 5);
    CHECK_EQ(answer.status, 503);
    CHECK_EQ(answer.body_bytes, 4);
    CHECK_EQ(answer.close, 1);
}

static void any_beginning_of_a_head_asks_for_more(void)
{
    size_t head = h1(h1_two, sizeof h1_two - 1).used;

    for (size_t size = 0; size < head; size++)
        CHECK_EQ(h1(h1_two, size).kind, ANSWER_MORE);
}

static void what_is_no_answer_is_an_error(void)
{
    static const char *const wrong[] = {
        "SSH-2.0-OpenSSH_9.2 Debian\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nserver: without a length\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(h1(wrong[i], strlen(wrong[i])).kind, ANSWER_ERROR);

    char *endless = malloc(ANSWER_HEAD_BYTES + 1);
    memset(endless, 'a', ANSWER_HEAD_BYTES + 1);
    CHECK_EQ(h1(endless, ANSWER_HEAD_BYTES + 1).kind, ANSWER_ERROR);
    free(endless);
}

static void an_answer_without_a_body_needs_no_length(void)
{
    static const char none[] = "HTTP/1.1 204 No Content\r\n\r\n";
    static const char early[] = "HTTP/1.1 100 Continue\r\n\r\n";

    CHECK_EQ(h1(none, sizeof none - 1).kind, ANSWER_DONE);
    CHECK_EQ(h1(early, sizeof early - 1).kind, ANSWER_NOTHING);
}

/* HEADERS of stream 5 with status 200 and a length, then DATA that ends it. */
static const unsigned char h2_two[] = {0,    0, 4, 1, 4, 0, 0, 0, 5, 0x88, 0x0f, 0x0d,
                                       0x00, 0, 0, 2, 0, 1, 0, 0, 0, 5,    'o',  'k'};

static void frames_tell_status_and_end(void)
{
    struct answer answer = h2(h2_two, sizeof h2_two);

    CHECK_EQ(answer.kind, ANSWER_STATUS);
    CHECK_EQ(answer.status, 200);
    CHECK_EQ(answer.stream, 5);
    answer = h2(h2_two + answer.used, sizeof h2_two - answer.used);
    CHECK_EQ(answer.kind, ANSWER_DONE);
    CHECK_EQ(answer.data_bytes, 2);
}

static void any_beginning_of_a_frame_asks_for_more(void)
{
    size_t first = h2(h2_two, sizeof h2_two).used;

    for (size_t size = 0; size < first; size++)
        CHECK_EQ(h2(h2_two, size).kind, ANSWER_MORE);
}

static int status(const char *bytes, size_t size)
{
    return hpack_status((const unsigned char *)bytes, size);
}

static void a_status_is_read_in_every_way_that_servers_write_it(void)
{
    CHECK_EQ(status("\x88", 1), 200);
    CHECK_EQ(status("\x8e", 1), 500);
    CHECK_EQ(status("\x20\x88", 2), 200); /* after the size of the table */
    CHECK_EQ(status("\x08\x03"
                    "503",
                    5),
             503); /* not to be indexed */
    CHECK_EQ(status("\x48\x03"
                    "429",
                    5),
             429);
    /* RFC 7541, C.6.1: 302 in Huffman's code; C.6.2: 307. */
    CHECK_EQ(status("\x48\x82\x64\x02", 4), 302);
    CHECK_EQ(status("\x48\x83\x64\x0e\xff", 5), 307);
    CHECK_EQ(status("\x82", 1), 0);
    CHECK_EQ(status("\x48\x03"
                    "50",
                    4),
             0);
    CHECK_EQ(status("\x48\x82\x64", 3), 0);
    CHECK_EQ(status("", 0), 0);
}

static void random_bytes_are_read_within_their_bounds(void)
{
    srand(1);
    for (int turn = 0; turn < 100000; turn++) {
        unsigned char bytes[64];
        size_t size = (size_t)rand() % sizeof bytes;

        for (size_t i = 0; i < size; i++)
            bytes[i] = (unsigned char)rand();
        if (size > 3)
            bytes[0] = bytes[1] = 0;
        struct answer answer = h2(bytes, size);
        CHECK_EQ(answer.used <= size, 1);
        answer = h1((const char *)bytes, size);
        CHECK_EQ(answer.used <= size, 1);
    }
}

static void control_frames_are_told_apart(void)
{
    static const unsigned char settings[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9};
    static const unsigned char ack[] = {0, 0, 0, 4, 1, 0, 0, 0, 0};
    static const unsigned char ping[] = {0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const unsigned char reset[] = {0, 0, 4, 3, 0, 0, 0, 0, 7, 0, 0, 0, 8};
    static const unsigned char away[] = {0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const unsigned char large[] = {1, 0, 0, 0, 0, 0, 0, 0, 1};

    CHECK_EQ(h2(settings, sizeof settings).kind, ANSWER_SETTINGS);
    CHECK_EQ(h2(settings, sizeof settings).streams, 9);
    CHECK_EQ(h2(ack, sizeof ack).kind, ANSWER_NOTHING);
    CHECK_EQ(h2(ping, sizeof ping).kind, ANSWER_PING);
    CHECK_EQ(h2(reset, sizeof reset).kind, ANSWER_RESET);
    CHECK_EQ(h2(away, sizeof away).kind, ANSWER_ERROR);
    CHECK_EQ(h2(large, sizeof large).kind, ANSWER_ERROR);
}

static void requests_are_planned_evenly_and_without_drift(void)
{
    CHECK_EQ(planned_ns(0, 3), 0);
    CHECK_EQ(planned_ns(1, 3), 333333333);
    CHECK_EQ(planned_ns(3, 3), 1000000000);
    CHECK_EQ(planned_ns(3000000, 3), 1000000000000000);
    CHECK_EQ(planned_ns(1999999, 1000000), 1999999000);
}

int main(void)
{
    RUN(an_answer_has_its_status_and_its_length);
    RUN(any_beginning_of_a_head_asks_for_more);
    RUN(what_is_no_answer_is_an_error);
    RUN(an_answer_without_a_body_needs_no_length);
    RUN(frames_tell_status_and_end);
    RUN(any_beginning_of_a_frame_asks_for_more);
    RUN(a_status_is_read_in_every_way_that_servers_write_it);
    RUN(random_bytes_are_read_within_their_bounds);
    RUN(control_frames_are_told_apart);
    RUN(requests_are_planned_evenly_and_without_drift);
    return check_report();
}
