/* What glibc's module for Swift leaves out: eventfd(2), prctl(2), adjtimex(2), statfs(2), ppoll(2), sched_setattr(2). */
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Enumerators that are combined with |, which Swift does not import as numbers. */
static const int roost_eventfd_flags = EFD_NONBLOCK | EFD_CLOEXEC;

/* prctl is variadic, which does not import. */
static inline void roost_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

/* Whether something keeps this machine's clock: 1 yes, 0 no, -1 where the kernel does not tell. */
static inline int roost_clock_is_kept(void) {
    struct timex state = {0};
    int answer = adjtimex(&state);
    return answer < 0 ? -1 : answer != TIME_ERROR;
}

/* Whether a folder is in memory: on a tmpfs or a ramfs, by their numbers in statfs(2). */
static inline int roost_is_in_memory(const char *path) {
    struct statfs volume;
    if (statfs(path, &volume) != 0) return 0;
    unsigned int type = (unsigned int)volume.f_type;
    return type == 0x01021994u || type == 0x858458f6u;
}

/* ppoll without a mask of signals. By its number: poll.h, in this module, would make another pollfd of Swift's. */
static inline void roost_poll(void *polled, unsigned long count, long seconds, long nanoseconds) {
    struct timespec limit = {seconds, nanoseconds};
    syscall(SYS_ppoll, polled, count, &limit, NULL, (size_t)8);
}

/* Asks for slices of so many nanoseconds for the calling thread, from 100,000 to 100,000,000. Under a scheduler that knows them (EEVDF
 * with sched_attr.sched_runtime for SCHED_OTHER, Linux 6.12), a thread with shorter slices takes a core from one with longer ones as soon
 * as it wakes, and gets no more of the core in all. Older kernels ignore it; -1 with errno where the thread is scheduled by other rules. */
static inline int roost_set_slice(uint64_t nanoseconds) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, (unsigned)sizeof attributes, 0u) != 0) return -1;
    /* SCHED_OTHER and SCHED_BATCH. For others the runtime is a budget. */
    if (attributes.policy != 0 && attributes.policy != 3) return -1;
    attributes.runtime = nanoseconds;
    return (int)syscall(SYS_sched_setattr, 0, &attributes, 0u);
}
