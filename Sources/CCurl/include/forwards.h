// Requests of clients that the hub passes on to the application's backend, and whose answers come in pieces for as long as they like.
//
// Invariants
//   - A set belongs to one thread.
//   - Nothing waits but roost_forwards_wait, which calls back on its thread; within a call back nothing of the set may be called.
//   - A request is sent once: each has a connection of its own, because libcurl sends one again whose old connection ends without an
//     answer. No redirect is followed.
//   - Each request that was begun ends with one call of `done`, unless it is cancelled.
//   - No problem holds the URL, because a URL may hold credentials.

#ifndef ROOST_FORWARDS_H
#define ROOST_FORWARDS_H

#include <stddef.h>
#include <stdint.h>

struct roost_forwards;

struct roost_forward_calls {
    void *context;
    // The head of an answer is there.
    void (*head)(void *context, uint64_t id, long status);
    // A piece of an answer, of whose status and content type. 0 where there is no room for it: it is brought again after
    // roost_forwards_resume.
    int (*piece)(void *context, uint64_t id, long status, const char *type, const unsigned char *bytes, size_t count);
    // It is over: NULL where the answer is whole, else a few words. The status is 0 before there was an answer, and -1 before there was
    // a connection.
    void (*done)(void *context, uint64_t id, long status, const char *type, const char *problem);
};

// NULL where libcurl cannot start.
struct roost_forwards *roost_forwards_create(struct roost_forward_calls calls);
void roost_forwards_destroy(struct roost_forwards *set);

// Begins a POST; headers and body are copied. The connection has to be made within `connect_ms`, and an answer may be silent for
// `silence_s`. Returns 0 where it cannot.
int roost_forwards_begin(struct roost_forwards *set, uint64_t id, const char *url, const char *const *headers, size_t header_count,
                         const unsigned char *body, size_t length, long connect_ms, long silence_s);

void roost_forwards_resume(struct roost_forwards *set, uint64_t id);
void roost_forwards_cancel(struct roost_forwards *set, uint64_t id);

// Waits until something comes, the descriptor is readable or the time is over, and goes on with whatever is possible.
void roost_forwards_wait(struct roost_forwards *set, int descriptor, int timeout_ms);

#endif
