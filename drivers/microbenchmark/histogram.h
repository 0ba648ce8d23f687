/*
 * Latencies in nanoseconds, counted in buckets. Below 256 a bucket is one nanosecond. Above, every octave
 * has 128 equal buckets, so the width is under 0.8 % of the value: bucket 256 + 128 * octave + place holds
 * from (128 + place) << (octave + 1) on, as many values as 1 << (octave + 1).
 */
#pragma once

#include <stdint.h>

enum {
    SUB_BUCKETS = 128,
    EXACT_LIMIT = 2 * SUB_BUCKETS,
    EXACT_BITS = 8,
    LATENCY_BITS = 48, /* 3.3 days; the last bucket takes what is longer */
    BUCKETS = EXACT_LIMIT + (LATENCY_BITS - EXACT_BITS) * SUB_BUCKETS,
};

struct histogram {
    uint64_t count, sum_ns, min_ns, max_ns;
    uint64_t buckets[BUCKETS];
};

static inline uint32_t bucket_of(uint64_t value)
{
    if (value < EXACT_LIMIT)
        return (uint32_t)value;
    if (value >> LATENCY_BITS != 0)
        return BUCKETS - 1;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value) - EXACT_BITS;
    return EXACT_LIMIT + octave * SUB_BUCKETS + (uint32_t)(value >> (octave + 1)) - SUB_BUCKETS;
}

static inline void histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->buckets[bucket_of(ns)]++;
    histogram->count++;
    histogram->sum_ns += ns;
    if (ns < histogram->min_ns || histogram->count == 1)
        histogram->min_ns = ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0 || from->min_ns < into->min_ns)
        into->min_ns = from->min_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
        into->buckets[bucket] += from->buckets[bucket];
}
