/* What holds until the VM says otherwise, see vm.h. */
#include "memory/vm.h"

struct vm vm = {.otp_release = 25, .schedulers = 1, .async_threads = 1};
