// HTTP/2 connections to APNs: libcurl connects (names, proxies, TLS), nghttp2 speaks the frames.
//
// libcurl's own HTTP/2 sends a POST again by itself when a connection that it used before ends without an answer
// (Curl_retry_request in lib/transfer.c), whether or not the server had processed it, and tells nobody. APNs must get a
// notification once, so here nothing is ever sent again: each request ends with exactly one note that says whether the
// server may have seen it.
//
// Invariants
//   - A set, its connections and its notes belong to one thread; only roost_apns_wake may be called from another.
//   - Nothing waits but roost_apns_wait. Nothing decides here: who calls keeps to the peer's limit, to time limits, and
//     knows when to connect again.
//   - Every request that roost_apns_post took ends with one note of ANSWERED, UNSEEN, LOST or none after
//     roost_apns_cancel. Every connection ends with one note of CLOSED, except after roost_apns_close.
//   - No header's value and no body is in any text made here.

#ifndef ROOST_APNS_H
#define ROOST_APNS_H

#include <stddef.h>
#include <stdint.h>

typedef struct roost_apns roost_apns;

enum roost_apns_kind {
    ROOST_APNS_OPENED,   // the connection speaks HTTP/2
    ROOST_APNS_CLOSED,   // it is gone, or never came to be; `text` says why
    ROOST_APNS_GOAWAY,   // it takes nothing new; `body` is what the server said, `status` the HTTP/2 error code
    ROOST_APNS_PONG,     // the answer to a ping
    ROOST_APNS_ANSWERED, // `status`, `body`, `date`
    ROOST_APNS_UNSEEN,   // the server has certainly not processed the request (RFC 9113, section 8.7, or it never left)
    ROOST_APNS_LOST      // it left, and there will be no answer
};

struct roost_apns_note {
    enum roost_apns_kind kind;
    uint64_t connection;
    uint64_t request;
    int status;
    size_t length;
    unsigned char *body; // cut at ROOST_APNS_BODY bytes
    const char *text;    // never NULL
    const char *date;    // the header of that name; never NULL
};

#define ROOST_APNS_BODY 512

// Names the calling thread, and keeps signals from it: TLS writes to sockets whose peer may be gone.
void roost_apns_begin_thread(void);

// NULL where there is no memory.
roost_apns *roost_apns_create(void);
void roost_apns_destroy(roost_apns *set);

// Ends a wait, or the next one. From any thread.
void roost_apns_wake(roost_apns *set);

// Sends, receives and connects until there is something to do, or for `timeout_ms`.
void roost_apns_wait(roost_apns *set, int timeout_ms);

// The oldest note that was not yet taken, valid until the next call; NULL where there is none.
const struct roost_apns_note *roost_apns_next(roost_apns *set);

// Begins to connect to `url` (https://host:port); 0 where that cannot even begin. `ca_file` may be NULL.
uint64_t roost_apns_open(roost_apns *set, const char *url, const char *ca_file, long timeout_ms);

// Says GOAWAY and closes at once; what was on its way ends LOST or UNSEEN.
void roost_apns_close(roost_apns *set, uint64_t connection);

// How many requests the peer allows at a time (SETTINGS_MAX_CONCURRENT_STREAMS, as it is in force).
uint32_t roost_apns_limit(roost_apns *set, uint64_t connection);

// 0, or -1 where the connection takes none. `headers` are names and values, each followed by a NUL; `:path` is one.
int roost_apns_post(roost_apns *set, uint64_t connection, uint64_t request, const char *headers, size_t headers_length,
                    const unsigned char *body, size_t length);

// Forgets the request and tells the server. No note follows. 1 where it had left, 0 where not, -1 where it is unknown.
int roost_apns_cancel(roost_apns *set, uint64_t connection, uint64_t request);

void roost_apns_ping(roost_apns *set, uint64_t connection);

#endif
