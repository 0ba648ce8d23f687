/* How long a device takes: times that are drawn, limits and stalls. Knows no requests, only their kind, size and place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum service_kind { SERVICE_READ, SERVICE_WRITE, SERVICE_FLUSH, SERVICE_KINDS };
enum law_shape { LAW_NONE, LAW_CONSTANT, LAW_UNIFORM, LAW_EXPONENTIAL, LAW_LOGNORMAL };

/* Times in ns. constant: first; uniform: first to second; exponential: mean first; lognormal: median first, factor second. */
struct law {
    enum law_shape shape; /* LAW_NONE: answered at once */
    double first, second;
};

struct service {
    struct law laws[SERVICE_KINDS];
    struct law sequential;         /* of a read or write that goes on where another ended; LAW_NONE: as any other */
    unsigned depth;                /* so many are served at once; 0: all */
    uint64_t requests_per_s;       /* 0: no limit */
    uint64_t bytes_per_s;          /* 0: no limit */
    uint64_t stall_ns, period_ns;  /* nothing is done for stall_ns at the end of each period; 0: never */
    uint64_t path_ns[SERVICE_KINDS]; /* what the way to us and back takes: less by that is one served that need not wait */
    uint64_t seed;
};

/* "constant:NS", "uniform:NS:NS", "exponential:NS", "lognormal:NS:FACTOR"; false for anything else. */
bool law_parse(const char *text, struct law *law);

/* Before the first request. */
void service_begin(const struct service *service, uint64_t now_ns);
/*
 * When a request that can be served from `from_ns` on is done. `prompt`: it did not have to wait. `late` is counted
 * against what comes back here, never against what was drawn.
 */
uint64_t service_end(enum service_kind kind, uint64_t bytes, uint64_t at, uint64_t from_ns, bool prompt);
