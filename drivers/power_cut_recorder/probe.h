/* What a request to a block device takes, from its asking to its answer. */
#pragma once

#include "options.h"

/* Prints the document of one probe; 0, or 1 with a reason on standard error. */
int probe(const struct options *options);
