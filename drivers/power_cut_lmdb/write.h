/* The writer. */
#pragma once

#include "options.h"

/* The program's exit status. */
int write_transactions(const struct options *options);
