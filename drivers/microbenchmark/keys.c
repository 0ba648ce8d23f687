/* Makes what keys.h cuts from. */
#define _GNU_SOURCE
#include "keys.h"

#include "failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Half of each piece repeats the other half, so the text compresses to half, in any window of 100 bytes. */
enum { PIECE_BYTES = 100 };

static void write_text(char *text, uint64_t seed)
{
    struct random random = {seed};
    for (size_t at = 0; at < VALUE_TEXT_BYTES; at++) {
        size_t place = at % PIECE_BYTES;
        text[at] = place < PIECE_BYTES / 2 ? (char)(' ' + random_below(&random, 95)) : text[at - PIECE_BYTES / 2];
    }
}

/*
 * The text is mapped several times in a row, so that a value of any size can be cut at any place of it
 * without one byte more of memory, and without a look whether it fits.
 */
void values_make(struct values *values, uint64_t value_bytes, uint64_t seed)
{
    uint64_t copies = value_bytes / VALUE_TEXT_BYTES + 2;
    int file = memfd_create("values", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, VALUE_TEXT_BYTES) != 0)
        fail(errno, "memory for the values");
    char *text = mmap(NULL, copies * VALUE_TEXT_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (text == MAP_FAILED)
        fail(errno, "memory for the values");
    for (uint64_t copy = 0; copy < copies; copy++)
        if (mmap(text + copy * VALUE_TEXT_BYTES, VALUE_TEXT_BYTES, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0) == MAP_FAILED)
            fail(errno, "memory for the values");
    close(file);
    write_text(text, seed);
    *values = (struct values){.text = text};
}

uint32_t *shuffled(uint64_t count, struct random *random)
{
    uint32_t *numbers = malloc(count * sizeof *numbers);
    if (numbers == NULL)
        return NULL;
    for (uint64_t at = 0; at < count; at++)
        numbers[at] = (uint32_t)at;
    for (uint64_t at = count; at > 1; at--) {
        uint64_t other = random_below(random, at);
        uint32_t number = numbers[at - 1];
        numbers[at - 1] = numbers[other];
        numbers[other] = number;
    }
    return numbers;
}
