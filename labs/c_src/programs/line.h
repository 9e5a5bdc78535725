/* Lines of text from a file descriptor, and hexadecimal in them: how a node program is told
 * what must not stand on its command line, where every user of the machine can read it.
 *
 * Plain C, no allocation. One read() per byte, so that nothing behind the line is taken.
 */
#ifndef TAME_LINE_H
#define TAME_LINE_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Reads up to a newline and puts the text before it, ended by a zero byte, into line. Returns its
 * length, or -1: no newline came, or the text does not fit into size bytes. */
static inline int line_read(int fd, char *line, size_t size)
{
    size_t pos = 0;

    for (;;) {
        char c;
        ssize_t n = read(fd, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        if (c == '\n')
            break;
        if (pos + 1 == size)
            return -1;
        line[pos++] = c;
    }
    line[pos] = '\0';
    return (int)pos;
}

static inline int line_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Turns hexadecimal text into the bytes it stands for, in place. Returns how many, or -1 when it
 * is not hexadecimal. */
static inline int line_unhex(char *text)
{
    size_t size = 0;

    for (; text[2 * size] != '\0'; size++) {
        int high = line_hex_digit(text[2 * size]);
        int low = high < 0 ? -1 : line_hex_digit(text[2 * size + 1]);
        if (low < 0)
            return -1;
        text[size] = (char)(high << 4 | low);
    }
    return (int)size;
}

#endif
