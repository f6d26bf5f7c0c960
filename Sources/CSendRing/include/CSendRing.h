// Sends the same bytes to many sockets with one system call: io_uring as a batch of send(2).
//
// Invariants
//   - A ring is used only by the thread that created it (IORING_SETUP_SINGLE_ISSUER); nothing is locked.
//   - roost_send_ring_send returns when the kernel has finished every send: nothing is in flight between calls, so the
//     buffer and the sockets belong to the caller again.
//   - No send waits for a socket: MSG_DONTWAIT makes the kernel return -EAGAIN at once (io_uring_prep_send(3)).
//   - If the kernel offers no io_uring (before 5.6, or forbidden by io_uring_disabled or a seccomp filter), no ring can
//     be created, and send(2) is used.

#ifndef ROOST_CSENDRING_H
#define ROOST_CSENDRING_H

#include <stddef.h>
#include <stdint.h>

struct roost_send_ring;

// A ring for batches of up to `batch` sends. NULL with errno if the kernel refuses.
struct roost_send_ring *roost_send_ring_create(unsigned batch);
void roost_send_ring_destroy(struct roost_send_ring *ring);

// Sends `bytes` to each of `sockets`; results[i] is what send(2) would have returned for sockets[i], or -errno. Returns how many of them,
// from the first on, were handed to the kernel: fewer than `count` only if it accepts no more, and then the ring must not be used again.
unsigned roost_send_ring_send(struct roost_send_ring *ring, const void *bytes, size_t length, const int32_t *sockets,
                              int32_t *results, unsigned count);

#endif
