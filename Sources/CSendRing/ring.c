#include "CSendRing.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/socket.h>

struct roost_send_ring {
    struct io_uring ring;
};

// From the cheapest on: task work that runs only when requested came with Linux 6.1, cooperative task work with 5.19,
// and batches that continue after a failed entry with 5.18.
static const unsigned setups[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
    0,
};

struct roost_send_ring *roost_send_ring_create(unsigned batch) {
    struct roost_send_ring *ring = calloc(1, sizeof *ring);
    if (!ring) return NULL;
    int failure = 0;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        failure = io_uring_queue_init(batch, &ring->ring, setups[i]);
        if (failure != -EINVAL) break;
    }
    if (failure) {
        free(ring);
        errno = -failure;
        return NULL;
    }
    return ring;
}

void roost_send_ring_destroy(struct roost_send_ring *ring) {
    io_uring_queue_exit(&ring->ring);
    free(ring);
}

// Takes the available completions.
static unsigned reap(struct io_uring *ring, int32_t *results) {
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    io_uring_for_each_cqe(ring, head, cqe) {
        results[cqe->user_data] = cqe->res;
        seen++;
    }
    io_uring_cq_advance(ring, seen);
    return seen;
}

unsigned roost_send_ring_send(struct roost_send_ring *ring, const void *bytes, size_t length, const int32_t *sockets,
                              int32_t *results, unsigned count) {
    unsigned prepared = 0, submitted = 0, completed = 0;
    for (struct io_uring_sqe *sqe; prepared < count && (sqe = io_uring_get_sqe(&ring->ring)); prepared++) {
        io_uring_prep_send(sqe, sockets[prepared], bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        io_uring_sqe_set_data64(sqe, prepared);
        results[prepared] = -EIO;
    }
    while (completed < prepared) {
        int taken = io_uring_submit_and_wait(&ring->ring, prepared - completed);
        if (taken >= 0)
            submitted += (unsigned)taken;
        else if (taken != -EINTR && taken != -EAGAIN && taken != -EBUSY)
            break;
        completed += reap(&ring->ring, results);
    }
    // The kernel also completes whatever it accepted, whatever made it refuse the rest.
    while (completed < submitted) {
        struct io_uring_cqe *cqe;
        int failure = io_uring_wait_cqe(&ring->ring, &cqe);
        if (failure && failure != -EINTR && failure != -EAGAIN) break;
        completed += reap(&ring->ring, results);
    }
    return submitted;
}
