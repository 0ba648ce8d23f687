/*
 * The engine whose power is cut, behind calls that both modes make. An engine is a folder beside this file with a
 * store_NAME.c, and a program is compiled with one of them. Each call ends the program by fail() where the library fails.
 */
#pragma once

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum table { ENTRIES, ACCOUNTS, TABLES };

struct bytes {
    size_t size;
    const void *data;
};

/* What only some engines count of the whole file. */
struct pages {
    uint64_t branch, leaf, overflow, free, last, unaccounted;
};

const char *store_version(void);

/* Both tables in a new file, open for writing; EEXIST where there is one. */
void store_make(const struct options *options);
void store_begin(void);
/* Into `value`, which holds VALUE_BYTES_MAX: its size; fails where it is not there. */
size_t store_get(enum table table, const struct bytes *key, char *value);
/* `is_new`: it must not be there; `is_last`: it is behind all that are. */
void store_put(enum table table, const struct bytes *key, const struct bytes *value, bool is_new, bool is_last);
void store_commit(void);
/* What is dirty, and the file system's own maps of it, to the medium. */
void store_flush(void);
/* Ask the kernel to write what is dirty, from a thread beside the clients. */
void store_press(void);

/* What is there already, for reading. */
void store_open(const struct options *options);
/* `take` gets every entry of the table in order. How many more or fewer there are than the engine says: 0 or 1. */
uint64_t store_walk(enum table table, void (*take)(const struct bytes *key, const struct bytes *value));
/* The last transaction, 0 where the engine has no numbers. */
uint64_t store_transaction(void);
/* The engine's own check of the whole, once both tables were walked; `complain` gets each finding of it. */
void store_verify(struct pages *pages, void (*complain)(const char *text));
