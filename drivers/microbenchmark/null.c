/*
 * The engine that does nothing, for --null: the loops call it as they call a library. Nothing of it is inlined, and the empty
 * statements keep the compiler from knowing what it gives.
 */
#define _GNU_SOURCE
#include "loops.h"

#define CALL static __attribute__((noinline, noclone))

CALL void begin(struct session *session, bool reads)
{
    session->null_left = session->database->keys;
    __asm__ volatile("" : : "r"(session), "r"(reads) : "memory");
}

CALL void put(struct session *session, const struct bytes *key, const struct bytes *value, bool appends)
{
    __asm__ volatile("" : : "r"(session), "r"(key), "r"(value), "r"(appends) : "memory");
}

CALL void end(struct session *session) { __asm__ volatile("" : : "r"(session) : "memory"); }

CALL bool read_one(struct session *session, const struct bytes *key, struct bytes *value)
{
    __asm__ volatile("" : : "r"(key) : "memory");
    *value = session->database->null_value;
    return true;
}

CALL bool step(struct session *session, struct bytes *key, struct bytes *value, enum direction direction)
{
    __asm__ volatile("" : : "r"(direction) : "memory");
    if (session->null_left == 0)
        return false;
    session->null_left--;
    *key = *value = session->database->null_value;
    key->size = KEY_BYTES;
    return true;
}

static const struct calls CALLS = {begin, put, end, end, read_one, step};
DEFINE_LOOPS(NULL_LOOPS, CALLS);
