/* What a transaction writes, so that it can be told afterwards. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CLIENTS_MAX = 10000, ACCOUNTS_MAX = 1000000, VALUE_BYTES_MAX = 4096, CHANGES = 3 };

struct entry_key {
    uint32_t client;
    uint64_t sequence;
} __attribute__((packed));

/* The change of an account by number; an account may be there twice. */
struct entry {
    uint32_t account[CHANGES];
    int32_t change[CHANGES];
} __attribute__((packed));

struct account {
    int64_t balance;
    uint64_t changes; /* how often it was changed */
} __attribute__((packed));

/* splitmix64 */
static inline uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static inline uint64_t pad_of(const void *key, size_t bytes)
{
    uint64_t words[2] = {0};
    memcpy(words, key, bytes < sizeof words ? bytes : sizeof words);
    return mix(words[0] ^ mix(words[1]));
}

/* Behind its head a value is padded with what follows from its key, so that a torn one is seen. */
static inline void pad(char *value, size_t head, size_t bytes, uint64_t seed)
{
    for (size_t at = head; at < bytes; at++)
        value[at] = (char)mix(seed + at);
}

static inline bool is_padded(const char *value, size_t head, size_t bytes, uint64_t seed)
{
    for (size_t at = head; at < bytes; at++)
        if (value[at] != (char)mix(seed + at))
            return false;
    return true;
}
