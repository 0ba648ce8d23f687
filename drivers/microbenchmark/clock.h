/* The monotonic clock, in nanoseconds, and what one look at it costs. */
#pragma once

#include <stdint.h>
#include <time.h>

static const uint64_t SECOND_NS = 1000000000u;

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* The least of several means: interruptions only add to it. */
static inline uint64_t clock_cost_ns(void)
{
    enum { ROUNDS = 16, LOOKS = 256 };
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begun = clock_ns(), now = begun;
        for (int look = 0; look < LOOKS; look++)
            now = clock_ns();
        if ((now - begun) / LOOKS < least)
            least = (now - begun) / LOOKS;
    }
    return least;
}
