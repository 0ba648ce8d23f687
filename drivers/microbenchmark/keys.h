/* Keys, values and random numbers: cheap beside the library, and the same for the same seed. */
#pragma once

#include "options.h"

#include <stdint.h>
#include <string.h>

struct random {
    uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
static inline uint64_t random_next(struct random *random)
{
    uint64_t value = random->state += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

/* From 0 to limit - 1; its unevenness is under limit / 2^64. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)random_next(random) * limit >> 64);
}

/* The decimal digits of `number`, zeros before them: keys sort as their numbers do. */
static inline void key_write(char key[KEY_BYTES], uint64_t number)
{
    static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
                                "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    for (int at = KEY_BYTES - 2; at >= 0; at -= 2, number /= 100)
        memcpy(key + at, pairs + 2 * (number % 100), 2);
}

/* Text that is cut into values, one after the other and round again. */
struct values {
    char *text;
    uint64_t at;
};

enum { VALUE_TEXT_BYTES = 1024 * 1024 };

void values_make(struct values *values, uint64_t value_bytes, uint64_t seed);

static inline char *value_next(struct values *values, uint64_t value_bytes)
{
    char *value = values->text + values->at;
    values->at = (values->at + value_bytes) % VALUE_TEXT_BYTES;
    return value;
}

/* The numbers from 0 to count - 1 in random order; NULL where there is no memory. */
uint32_t *shuffled(uint64_t count, struct random *random);
