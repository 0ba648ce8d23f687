/* The files that others see: FUSE's side of the recorder. */
#pragma once

#include "recorder.h"

struct fuse_session;

/* NULL where it cannot be mounted; the library says why on standard error. */
struct fuse_session *files_mount(struct recorder *recorder, const char *target);
/*
 * Until it is unmounted or a signal comes; false where the kernel's requests could not be read any more. Requests of
 * which the service has a law, and all of a modelled disk, are answered as queue.h has it.
 */
bool files_serve(struct fuse_session *session, struct recorder *recorder, const struct options *options);
