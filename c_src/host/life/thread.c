/* A thread's own state, see thread.h. */
#include "life/thread.h"

_Thread_local struct host_thread host_thread;
