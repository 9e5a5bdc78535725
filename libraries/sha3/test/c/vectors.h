/* Reads a file of ../vectors: records of `key = value` lines, with empty lines between them. */
#ifndef SHA3_VECTORS_H
#define SHA3_VECTORS_H

#include "subject.h"

#define FIELDS_MAX 8

struct record {
    char *line; /* the last that was read; owned */
    size_t size;
    int count;
    struct {
        char key[16];
        char *value; /* owned */
    } fields[FIELDS_MAX];
};

/* In the directory that VECTORS names when the tests are built. */
static inline FILE *vectors_open(const char *name)
{
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static inline void record_clear(struct record *record)
{
    while (record->count > 0)
        free(record->fields[--record->count].value);
}

/* Returns 0 at the end of the file; then nothing of the record is owned any more. */
static inline int record_read(FILE *file, struct record *record)
{
    record_clear(record);
    while (getline(&record->line, &record->size, file) > 0) {
        char *value = strstr(record->line, " =");

        if (record->line[0] == '#')
            continue;
        if (record->line[0] == '\n' && record->count > 0)
            return 1;
        if (value == NULL || record->count == FIELDS_MAX)
            continue;
        *value = '\0';
        value += 2;
        value += *value == ' ';
        value[strcspn(value, "\n")] = '\0';
        (void)snprintf(record->fields[record->count].key, 16, "%s", record->line);
        record->fields[record->count++].value = strdup(value);
    }
    if (record->count > 0)
        return 1;
    free(record->line);
    record->line = NULL;
    return 0;
}

/* NULL: the record has none. */
static inline const char *record_text(const struct record *record, const char *key)
{
    for (int i = 0; i < record->count; i++)
        if (strcmp(record->fields[i].key, key) == 0)
            return record->fields[i].value;
    return NULL;
}

static inline size_t record_number(const struct record *record, const char *key)
{
    const char *text = record_text(record, key);

    return text == NULL ? 0 : strtoul(text, NULL, 10);
}

/* The bytes of a hexadecimal value; the caller owns them. */
static inline unsigned char *record_bytes(const struct record *record, const char *key,
                                          size_t *size)
{
    const char *text = record_text(record, key);
    unsigned char *bytes;

    *size = text == NULL ? 0 : strlen(text) / 2;
    bytes = memory(*size);
    for (size_t i = 0; i < *size; i++) {
        const char two[3] = {text[2 * i], text[2 * i + 1], '\0'};

        bytes[i] = (unsigned char)strtoul(two, NULL, 16);
    }
    return bytes;
}

#endif
