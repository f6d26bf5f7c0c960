// The parts of libcurl that Swift cannot reach by itself: curl_easy_setopt is variadic, and its options are macros.
//
// Invariants
//   - roost_fetch may be called from any thread, with one handle for each call and none kept: libcurl then shares nothing
//     (libcurl-thread(3)). CURLOPT_NOSIGNAL is set, so name lookups that time out raise no signal in a process of many threads. The
//     global initialisation of libcurl 7.84 and later is safe from any thread, too.
//   - Only http and https, even after a redirect; credentials of the URL are never sent to another host.
//   - The caller's buffer limits what is read; a longer answer is an error, not a truncated one.
//   - `problem` never contains the URL, because a URL may contain credentials.

#ifndef ROOST_CCURL_H
#define ROOST_CCURL_H

#include "http2.h"
#include "forwards.h"

#include <stddef.h>

#define ROOST_FETCH_PROBLEM_SIZE 128

// Gets `url` into `buffer`. Returns the length of the body, or -1 with a few words in `problem` (ROOST_FETCH_PROBLEM_SIZE bytes,
// NUL-terminated). Any status but 200 is a problem. Waits at most `timeout_ms` in all.
long roost_fetch(const char *url, long timeout_ms, unsigned char *buffer, size_t size, char *problem);


// An HTTP request whose body and whose answer come in pieces.
struct roost_transfer {
    const char *method;
    const char *url;
    const char *const *headers;
    size_t header_count;
    void *context;
    // For a body in pieces: fills the buffer, waiting for at least one byte; 0 at the end, negative to give up. NULL: no body.
    long (*read)(void *context, unsigned char *buffer, size_t size);
    // Takes a piece of the answer, with its status; nonzero to give up.
    int (*write)(void *context, long status, const unsigned char *bytes, size_t count);
};

// Sequential requests, used by one thread at a time. A GET reuses the connection of the previous one if it is still open. Any other
// request gets a connection of its own: libcurl resends a request if its reused connection ends without an answer, and an append must
// not be sent twice. NULL if libcurl cannot start.
struct roost_requests;
struct roost_requests *roost_requests_create(void);
void roost_requests_destroy(struct roost_requests *requests);

// Waits for the whole answer. Returns its status, or -1 with the reason in `problem` (ROOST_FETCH_PROBLEM_SIZE bytes).
long roost_transfer(struct roost_requests *requests, const struct roost_transfer *asked, char *problem);

// Posts a whole body, over the connection of the previous request if that is still open, so that the server may see it twice. Waits for
// at most `timeout_ms`, and follows no redirect. Returns the answer's status, or -1 with the reason in `problem`
// (ROOST_FETCH_PROBLEM_SIZE bytes); the rest of the answer is dropped.
long roost_post(struct roost_requests *requests, const char *url, const char *const *headers, size_t header_count,
                const unsigned char *body, size_t length, long timeout_ms, char *problem);

// Returns a header of the last answer, valid until the next request; NULL if there was none of that name.
const char *roost_answer_header(struct roost_requests *requests, const char *name);

#endif
