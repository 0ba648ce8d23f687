/* What a modelled disk does with a load, in virtual time: millions of seconds of it in one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { REHEARSAL_BYTES = 512 };

/*
 * `model` as disk_parse() takes it, `load` as "read random depth=1 bytes=4096 count=1000 skip=0 disk=N from=0 until=N
 * flush=0 think_ns=0": so many requests at once between two addresses; the first `skip` are not counted; a flush behind every
 * `flush` of them, by whoever asked for that one; so long between an answer and the next request. Into `text` goes a line of JSON: {"per_s", "bytes_per_s", "seconds", "ns_mean",
 * "ns_p50", "ns_p99"}, with flushes no part of them but the time that they take. False, with the reason in it, where it
 * cannot be done.
 */
bool rehearse(const char *model, const char *load, char text[REHEARSAL_BYTES]);
