// HTTP/2 connections to push services: libcurl connects (names, proxies, TLS), nghttp2 speaks the frames.
//
// libcurl's own HTTP/2 sends a POST again by itself when a connection that it used before ends without an answer
// (Curl_retry_request in lib/transfer.c), whether or not the server had processed it, and tells nobody. A push service must get
// a notification once, so here nothing is ever sent again: each request ends with exactly one note that says whether the
// server may have seen it.
//
// Invariants
//   - A set, its connections and its notes belong to one thread; only roost_http2_wake may be called from another.
//   - Nothing waits but roost_http2_wait. Nothing decides here: who calls keeps to the peer's limit, to time limits, and
//     knows when to connect again.
//   - Every request that roost_http2_post took ends with one note of ANSWERED, UNSEEN, LOST or none after
//     roost_http2_cancel. Every connection ends with one note of CLOSED, except after roost_http2_close.
//   - No header's value and no body is in any text made here.

#ifndef ROOST_HTTP2_H
#define ROOST_HTTP2_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct roost_http2 roost_http2;

enum roost_http2_kind {
    ROOST_HTTP2_OPENED,   // the connection speaks HTTP/2
    ROOST_HTTP2_CLOSED,   // it is gone, or never came to be; `text` says why
    ROOST_HTTP2_GOAWAY,   // it takes nothing new; `body` is what the server said, `status` the HTTP/2 error code
    ROOST_HTTP2_PONG,     // the answer to a ping
    ROOST_HTTP2_ANSWERED, // `status`, `body`, `date`
    ROOST_HTTP2_UNSEEN,   // the server has certainly not processed the request (RFC 9113, section 8.7, or it never left)
    ROOST_HTTP2_LOST      // it left, and there will be no answer
};

struct roost_http2_note {
    enum roost_http2_kind kind;
    uint64_t connection;
    uint64_t request;
    int status;
    size_t length;
    unsigned char *body; // cut at ROOST_HTTP2_BODY bytes
    const char *text;    // never NULL
    const char *date;    // the headers of these names; never NULL
    const char *retry_after;
};

// Google's access tokens have one to two thousand bytes.
#define ROOST_HTTP2_BODY 4096

// Keeps signals from the calling thread: TLS writes to sockets whose peer may be gone.
void roost_http2_begin_thread(void);

// NULL where there is no memory.
roost_http2 *roost_http2_create(void);
void roost_http2_destroy(roost_http2 *set);

// Ends a wait, or the next one. From any thread.
void roost_http2_wake(roost_http2 *set);

// Sends, receives and connects until there is something to do, or for `timeout_ms`.
void roost_http2_wait(roost_http2 *set, int timeout_ms);

// The oldest note that was not yet taken, valid until the next call; NULL where there is none.
const struct roost_http2_note *roost_http2_next(roost_http2 *set);

// Says of each address whether it may be connected to: 0 for no. It is asked for the very address, after names were looked up.
typedef int roost_http2_guard(void *context, const struct sockaddr *address, size_t length);
// For URLs that strangers say: from now on `guard` is asked, and nothing goes through a proxy, which would look names up by itself.
void roost_http2_set_guard(roost_http2 *set, roost_http2_guard *guard, void *context);

// Begins to connect to `url` (https://host:port); 0 where that cannot even begin. `ca_file` may be NULL.
uint64_t roost_http2_open(roost_http2 *set, const char *url, const char *ca_file, long timeout_ms);

// Says GOAWAY and closes at once; what was on its way ends LOST or UNSEEN.
void roost_http2_close(roost_http2 *set, uint64_t connection);

// How many requests the peer allows at a time (SETTINGS_MAX_CONCURRENT_STREAMS, as it is in force).
uint32_t roost_http2_limit(roost_http2 *set, uint64_t connection);

// 0, or -1 where the connection takes none. `headers` are names and values, each followed by a NUL; `:path` is one.
// `indexes_all`: whether the path and the authorization go into the table of the header compression, as they are the same in most requests.
int roost_http2_post(roost_http2 *set, uint64_t connection, uint64_t request, const char *headers, size_t headers_length,
                    const unsigned char *body, size_t length, int indexes_all);

// Forgets the request and tells the server. No note follows. 1 where it had left, 0 where not, -1 where it is unknown.
int roost_http2_cancel(roost_http2 *set, uint64_t connection, uint64_t request);

void roost_http2_ping(roost_http2 *set, uint64_t connection);

#endif
