/* As much of erl_nif.h as a job library needs to be called from plain threads, so that sanitizers see
 * its threads and locks without a VM around them. A process is a pthread here, on a scheduler of its
 * own; terms are trees that their environment frees. For one file per program.
 *
 * As in the VM: a destructor runs on a scheduler and never where the last hold is released; a process
 * that is killed ends after its NIF, and on a dirty scheduler during it; a dead process sends
 * nothing. */
#ifndef TEST_FAKE_NIF_H
#define TEST_FAKE_NIF_H

#include <assert.h>
#include <erl_nif.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_threads.h"

#include "fake_nif/terms.h"
#include "fake_nif/resources.h"
#include "fake_nif/envs.h"
#include "fake_nif/processes.h"
#include "fake_nif/system.h"

#endif
