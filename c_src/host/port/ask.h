/* Questions to the VM, in bytes. Any thread but the one that reads the control port may ask; it
 * waits for the answer. In a probe there is nobody to ask. README.md lists the questions. */
#ifndef TAME_HOST_ASK_H
#define TAME_HOST_ASK_H

#include <stddef.h>
#include <stdint.h>

/* As many bytes before a question are free for what a frame has before it. */
#define ASK_HEAD_BYTES 32

/* room is ASK_HEAD_BYTES and then the question, a term in external format of size bytes. Returns
 * the answer in the same format, which the caller frees. NULL: there is no VM. */
unsigned char *ask(unsigned char *room, size_t size, size_t *answer_size);

/* The question that is one atom, or {Word, Name} with the name as a binary: an atom would make it
 * exist. Returns whether the answer is true or ok. */
int ask_word(const char *word);
int ask_name(const char *word, const unsigned char *name, size_t size);

/* An answer has come; called by the reader of the port. Unknown ids are ignored. */
void ask_answered(uint64_t id, const unsigned char *answer, size_t size);

#endif
