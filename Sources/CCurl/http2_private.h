// Declarations shared by http2.c, http2_connection.c and http2_session.c.

#ifndef ROOST_HTTP2_PRIVATE_H
#define ROOST_HTTP2_PRIVATE_H

#include "http2.h"

#include <curl/curl.h>
#include <nghttp2/nghttp2.h>

#define TEXT_SIZE 128
#define DATE_SIZE 40

struct note {
    struct roost_http2_note face;
    struct note *next;
    char text[TEXT_SIZE];
    char date[DATE_SIZE];
    char retry_after[DATE_SIZE];
    unsigned char body[ROOST_HTTP2_BODY];
};

struct stream {
    struct connection *connection;
    struct stream *previous, *next;
    uint64_t request;
    int32_t id;
    int has_left;   // the connection has its last frame
    int is_settled; // its note is written
    struct note *note;
    size_t sent, length, received;
    unsigned char payload[];
};

enum state { CONNECTING, OPEN, OVER };

struct connection {
    roost_http2 *set;
    struct connection *next;
    uint64_t id;
    enum state state;
    int has_more; // the last read stopped before the socket was empty
    int is_refused; // the guard refused an address
    CURL *easy;
    curl_socket_t socket;
    nghttp2_session *session;
    struct stream *streams;
    const uint8_t *out; // bytes from nghttp2 that the socket has not taken yet; owned by nghttp2
    size_t out_length;
    char authority[300];
};

struct roost_http2 {
    CURLM *multi;
    struct connection *connections;
    struct note *first, *last, *taken;
    struct curl_waitfd *waits;
    size_t waits_size;
    uint64_t last_id;
    roost_http2_guard *guard; // may be NULL
    void *guard_context;
};

struct note *roost_http2_new_note(enum roost_http2_kind kind, uint64_t connection, uint64_t request);
void roost_http2_add_note(roost_http2 *set, struct note *note);
struct connection *roost_http2_find(roost_http2 *set, uint64_t id);

// http2_connection.c
void roost_http2_connected(struct connection *connection, CURLcode code);
void roost_http2_read(struct connection *connection);
void roost_http2_flush(struct connection *connection);
// Ends all its requests; writes a note if `text` is given. The connection is freed by the next wait.
void roost_http2_end(struct connection *connection, const char *text);
void roost_http2_free(struct connection *connection);

// http2_session.c
int roost_http2_begin_session(struct connection *connection);
// Writes its note, unless that was done before, and frees it.
void roost_http2_finish(struct stream *stream, int is_refused);

#endif
