/* The writer. */
#pragma once

#include "options.h"

#include <signal.h>

/* The signal that asked to stop, or 0. */
extern volatile sig_atomic_t stop_signal;

/* The program's exit status. */
int write_transactions(const struct options *options);
