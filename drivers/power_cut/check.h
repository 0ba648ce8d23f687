/* The oracle. */
#pragma once

#include "options.h"

/* The program's exit status. */
int check_store(const struct options *options);
