/*
 * The histogram's buckets. Below 2048 us a bucket is one microsecond. Above, every octave has 1024 equal
 * buckets: the width is under 0.1 % of the value, and 9000 us (a threshold of the reports) is a bound.
 */
#pragma once

#include <stdint.h>

enum {
    EXACT_LIMIT = 2048,
    SUB_BUCKETS = 1024,
    EXACT_BITS = 11,
    LATENCY_BITS = 40, /* 12.7 days: anything longer is a damaged line, not a latency */
    BUCKETS = EXACT_LIMIT + (LATENCY_BITS - EXACT_BITS) * SUB_BUCKETS,
};

static inline uint32_t bucket_of(uint64_t value)
{
    if (value < EXACT_LIMIT)
        return (uint32_t)value;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value) - EXACT_BITS;
    /* value >> (octave + 1) lies in [1024, 2048): its leading one is the octave, the rest the place. */
    return EXACT_LIMIT + octave * SUB_BUCKETS + (uint32_t)(value >> (octave + 1)) - SUB_BUCKETS;
}
