// HTTP/2 connections to push services: libcurl connects (names, proxies, TLS), nghttp2 speaks the frames.
//
// libcurl's own HTTP/2 resends a POST by itself when a reused connection ends without an answer (Curl_retry_request in lib/transfer.c),
// whether or not the server had processed it, and does not report this. A push service must get a notification once, so nothing is ever
// resent here: each request ends with exactly one note that says whether the server may have seen it.
//
// Invariants
//   - A set, its connections and its notes belong to one thread; only roost_http2_wake may be called from another.
//   - Only roost_http2_wait waits. Nothing is decided here: the caller respects the peer's limit and time limits, and knows when to
//     reconnect.
//   - Every request accepted by roost_http2_post ends with one note of ANSWERED, UNSEEN or LOST, or with none after roost_http2_cancel.
//     Every connection ends with one note of CLOSED, except after roost_http2_close.
//   - No text made here contains a header's value or a body.

#ifndef ROOST_HTTP2_H
#define ROOST_HTTP2_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct roost_http2 roost_http2;

enum roost_http2_kind {
    ROOST_HTTP2_OPENED,   // the connection speaks HTTP/2
    ROOST_HTTP2_CLOSED,   // it is gone, or was never made; `text` gives the reason
    ROOST_HTTP2_GOAWAY,   // it accepts nothing new; `body` is the server's text, `status` the HTTP/2 error code
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

// NULL if memory is short.
roost_http2 *roost_http2_create(void);
void roost_http2_destroy(roost_http2 *set);

// Ends a wait, or the next one. From any thread.
void roost_http2_wake(roost_http2 *set);

// Sends, receives and connects until there is something to do, or for `timeout_ms`.
void roost_http2_wait(roost_http2 *set, int timeout_ms);

// Returns the oldest note not taken yet, valid until the next call; NULL if there is none.
const struct roost_http2_note *roost_http2_next(roost_http2 *set);

// Decides whether an address may be connected to: 0 for no. Called with the very address, after names were looked up.
typedef int roost_http2_guard(void *context, const struct sockaddr *address, size_t length);
// For URLs named by strangers: `guard` is asked from now on, and nothing goes through a proxy, which would look names up by itself.
void roost_http2_set_guard(roost_http2 *set, roost_http2_guard *guard, void *context);

// Starts to connect to `url` (https://host:port); 0 if even the start fails. `ca_file` may be NULL.
uint64_t roost_http2_open(roost_http2 *set, const char *url, const char *ca_file, long timeout_ms);

// Sends GOAWAY and closes at once; requests in flight end LOST or UNSEEN.
void roost_http2_close(roost_http2 *set, uint64_t connection);

// Returns the number of concurrent requests that the peer allows (SETTINGS_MAX_CONCURRENT_STREAMS, as in force).
uint32_t roost_http2_limit(roost_http2 *set, uint64_t connection);

// Returns 0, or -1 if the connection accepts no request. `headers` are names and values, each followed by a NUL; `:path` is one of
// them. `indexes_all`: whether the path and the authorization go into the table of the header compression, because they are the same in
// most requests.
int roost_http2_post(roost_http2 *set, uint64_t connection, uint64_t request, const char *headers, size_t headers_length,
                    const unsigned char *body, size_t length, int indexes_all);

// Forgets the request and tells the server. No note follows. Returns 1 if it had left, 0 if not, -1 if it is unknown.
int roost_http2_cancel(roost_http2 *set, uint64_t connection, uint64_t request);

void roost_http2_ping(roost_http2 *set, uint64_t connection);

#endif
