#define _GNU_SOURCE
#include "service.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places at which streams go on; more than a file system and a database have under way. */
enum { STREAMS = 16 };
static const double NS = 1e9, MOST_NS = 60e9;
static const struct {
    const char *name;
    enum law_shape shape;
    int numbers;
} SHAPES[] = {
    {"constant", LAW_CONSTANT, 1},
    {"uniform", LAW_UNIFORM, 2},
    {"exponential", LAW_EXPONENTIAL, 1},
    {"lognormal", LAW_LOGNORMAL, 2},
};

static struct service asked;
static uint64_t chance, begun_ns, free_ns, ends[STREAMS];
static unsigned next_stream;

bool law_parse(const char *text, struct law *law)
{
    const char *colon = strchr(text, ':');
    for (size_t at = 0; colon != NULL && at < sizeof SHAPES / sizeof *SHAPES; at++) {
        size_t length = strlen(SHAPES[at].name);
        if (length != (size_t)(colon - text) || strncmp(text, SHAPES[at].name, length) != 0)
            continue;
        char rest;
        double first, second = 0;
        int found = SHAPES[at].numbers == 1 ? sscanf(colon, ":%lf%c", &first, &rest)
                                            : sscanf(colon, ":%lf:%lf%c", &first, &second, &rest);
        *law = (struct law){SHAPES[at].shape, first, second};
        if (found != SHAPES[at].numbers || !(first >= 0) || !(first <= MOST_NS))
            return false;
        if (law->shape == LAW_UNIFORM)
            return second >= first && second <= MOST_NS;
        return law->shape != LAW_LOGNORMAL || (second >= 1 && second <= 10 && first > 0);
    }
    return false;
}

/* Vigna's xorshift64* (ACM Transactions on Mathematical Software 42, 4, 2016); in (0, 1). */
static double draw(void)
{
    chance ^= chance >> 12;
    chance ^= chance << 25;
    chance ^= chance >> 27;
    return ((double)((chance * 0x2545f4914f6cdd1du) >> 11) + 0.5) / 9007199254740992.0;
}

static double drawn_ns(const struct law *law)
{
    switch (law->shape) {
    case LAW_NONE: return 0;
    case LAW_CONSTANT: return law->first;
    case LAW_UNIFORM: return law->first + draw() * (law->second - law->first);
    case LAW_EXPONENTIAL: return fmin(MOST_NS, -law->first * log(draw()));
    case LAW_LOGNORMAL: break;
    }
    /* Box and Muller (Annals of Mathematical Statistics 29, 2, 1958). */
    double normal = sqrt(-2 * log(draw())) * cos(2 * M_PI * draw());
    return fmin(MOST_NS, law->first * exp(log(law->second) * normal));
}

void service_begin(const struct service *service, uint64_t now_ns)
{
    asked = *service;
    begun_ns = free_ns = now_ns;
    /* Zero would stay zero. */
    chance = service->seed ^ 0x9e3779b97f4a7c15u;
    chance = chance == 0 ? 1 : chance;
    memset(ends, 0xff, sizeof ends);
}

/* Whether it goes on where one of the last ended, and note where it ends itself. */
static bool goes_on(uint64_t bytes, uint64_t at)
{
    for (unsigned stream = 0; stream < STREAMS; stream++)
        if (ends[stream] == at) {
            ends[stream] = at + bytes;
            return true;
        }
    ends[next_stream] = at + bytes;
    next_stream = (next_stream + 1) % STREAMS;
    return false;
}

/* A limit is a pace: a request may begin once those before it have had their time of the device. */
static uint64_t paced(uint64_t from_ns, uint64_t bytes)
{
    double apart = 0;
    if (asked.requests_per_s > 0)
        apart = NS / (double)asked.requests_per_s;
    if (asked.bytes_per_s > 0)
        apart = fmax(apart, NS * (double)bytes / (double)asked.bytes_per_s);
    uint64_t begins = free_ns > from_ns ? free_ns : from_ns;
    free_ns = begins + (uint64_t)apart;
    return begins;
}

/* What would be done within a stall is done as much later as the stall had still to last. */
static uint64_t stalled(uint64_t from_ns, uint64_t end_ns)
{
    if (asked.stall_ns == 0)
        return end_ns;
    for (;;) {
        uint64_t since = from_ns > begun_ns ? from_ns - begun_ns : 0;
        uint64_t stall_end = begun_ns + (since / asked.period_ns + 1) * asked.period_ns;
        uint64_t stall_begin = stall_end - asked.stall_ns;
        if (end_ns <= stall_begin)
            return end_ns;
        end_ns += stall_end - (from_ns > stall_begin ? from_ns : stall_begin);
        from_ns = stall_end;
    }
}

uint64_t service_end(enum service_kind kind, uint64_t bytes, uint64_t at, uint64_t from_ns, bool prompt)
{
    const struct law *law = &asked.laws[kind];
    if (kind != SERVICE_FLUSH) {
        if (goes_on(bytes, at) && asked.sequential.shape != LAW_NONE)
            law = &asked.sequential;
        uint64_t begins = paced(from_ns, bytes);
        prompt = prompt && begins == from_ns;
        from_ns = begins;
    }
    double ns = drawn_ns(law);
    if (prompt)
        ns = fmax(0, ns - (double)asked.path_ns[kind]);
    return stalled(from_ns, from_ns + (uint64_t)ns);
}
