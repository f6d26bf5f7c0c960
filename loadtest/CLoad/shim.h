#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Glibc's Swift module leaves epoll out, and struct epoll_event is packed, with a union in it: what Swift sees are
   numbers. */
enum { roost_epoll_batch = 512 };

static inline int roost_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

/* Tells when the connection stands. */
static inline int roost_epoll_add(int epoll, int fd, uint32_t slot) {
    struct epoll_event event = {.events = EPOLLOUT, .data.u32 = slot};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* From then on tells when there is something to read. */
static inline int roost_epoll_read(int epoll, int fd, uint32_t slot) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

/* Fills `slots`, which has room for a batch; -1 with errno as epoll_wait has it. */
static inline int roost_epoll_wait(int epoll, uint32_t *slots, int milliseconds) {
    struct epoll_event events[roost_epoll_batch];
    int count = epoll_wait(epoll, events, roost_epoll_batch, milliseconds);
    for (int i = 0; i < count; i++) slots[i] = events[i].data.u32;
    return count;
}

/* A GNU extension: declared only for those who define _GNU_SOURCE before any header. */
void *memmem(const void *haystack, size_t length, const void *needle, size_t needle_length);
