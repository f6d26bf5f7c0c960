// Client requests that the hub passes on to the application's backend. Their answers come in pieces for any length of time.
//
// Invariants
//   - A set belongs to one thread.
//   - Only roost_forwards_wait waits. It calls back on its thread; a callback must not call any function of the set.
//   - A request is sent once: each has a connection of its own, because libcurl resends a request if its reused connection ends without
//     an answer. No redirect is followed.
//   - Each request that was started ends with one call of `done`, unless it is cancelled.
//   - No problem contains the URL, because a URL may contain credentials.

#ifndef ROOST_FORWARDS_H
#define ROOST_FORWARDS_H

#include <stddef.h>
#include <stdint.h>

struct roost_forwards;

struct roost_forward_calls {
    void *context;
    // The head of an answer has arrived.
    void (*head)(void *context, uint64_t id, long status);
    // A piece of an answer with this status and content type. Returns 0 if there is no room for it: it is passed again after
    // roost_forwards_resume.
    int (*piece)(void *context, uint64_t id, long status, const char *type, const unsigned char *bytes, size_t count);
    // The request is over: `problem` is NULL if the answer is complete, else a few words. The status is 0 before there was an answer,
    // and -1 before there was a connection.
    void (*done)(void *context, uint64_t id, long status, const char *type, const char *problem);
};

// NULL if libcurl cannot start.
struct roost_forwards *roost_forwards_create(struct roost_forward_calls calls);
void roost_forwards_destroy(struct roost_forwards *set);

// Starts a POST; headers and body are copied. The connection must be made within `connect_ms`, and an answer may be silent for
// `silence_s`. Returns 0 on failure.
int roost_forwards_begin(struct roost_forwards *set, uint64_t id, const char *url, const char *const *headers, size_t header_count,
                         const unsigned char *body, size_t length, long connect_ms, long silence_s);

void roost_forwards_resume(struct roost_forwards *set, uint64_t id);
void roost_forwards_cancel(struct roost_forwards *set, uint64_t id);

// Waits until something arrives, the descriptor is readable or the time is over, and does whatever is then possible.
void roost_forwards_wait(struct roost_forwards *set, int descriptor, int timeout_ms);

#endif
