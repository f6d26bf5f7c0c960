// Counts instructions with the processor's own counter (perf_event_open(2)).

#include "CAllocationCount.h"

#ifdef __linux__

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(void) {
    struct perf_event_attr what = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof what,
        .config = PERF_COUNT_HW_INSTRUCTIONS,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int64_t roost_instructions_now(void) {
    static int counter = -2;
    if (counter == -2) counter = open_counter();
    int64_t count = 0;
    if (counter < 0 || read(counter, &count, sizeof count) != sizeof count) return -1;
    return count;
}

#else

int64_t roost_instructions_now(void) { return -1; }

#endif
