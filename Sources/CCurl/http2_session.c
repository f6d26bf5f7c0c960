#include "http2_private.h"

#include <stdlib.h>
#include <string.h>

// Pseudo headers and those that services know: twelve; more is an error of the caller's.
#define HEADERS 16
// The maximum size of an answer; those of all services are far smaller, and one that does not end must be cut off.
#define LONGEST_ANSWER 65536

static void settle(struct stream *stream, enum roost_http2_kind kind) {
    if (stream->is_settled) return;
    stream->is_settled = 1;
    stream->note->face.kind = kind;
    roost_http2_add_note(stream->connection->set, stream->note);
    stream->note = NULL;
}

void roost_http2_finish(struct stream *stream, int is_refused) {
    // A status is the server's word even if the rest of the answer was lost; a 1xx is not an answer.
    if (!stream->is_settled && stream->note->face.status >= 200) settle(stream, ROOST_HTTP2_ANSWERED);
    settle(stream, is_refused || !stream->has_left ? ROOST_HTTP2_UNSEEN : ROOST_HTTP2_LOST);

    if (stream->previous) stream->previous->next = stream->next;
    else stream->connection->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    if (stream->connection->session)
        nghttp2_session_set_stream_user_data(stream->connection->session, stream->id, NULL);
    free(stream->note);
    free(stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t length, uint8_t flags, void *user) {
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    (void)user;
    if (!stream || stream->is_settled) return 0;
    if (name_length == 7 && !memcmp(name, ":status", 7)) {
        stream->note->face.status = atoi((const char *)value); // NUL-terminated, says nghttp2.h
    } else if (name_length == 4 && !memcmp(name, "date", 4) && length < DATE_SIZE) {
        memcpy(stream->note->date, value, length);
    } else if (name_length == 11 && !memcmp(name, "retry-after", 11) && length < DATE_SIZE) {
        memcpy(stream->note->retry_after, value, length);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length,
                   void *user) {
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    (void)user;
    if (!stream || stream->is_settled) return 0;
    stream->received += length;
    if (stream->received > LONGEST_ANSWER) {
        if (stream->received - length <= LONGEST_ANSWER)
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        return 0;
    }
    struct roost_http2_note *note = &stream->note->face;
    size_t room = ROOST_HTTP2_BODY - note->length;
    size_t taken = length < room ? length : room;
    memcpy(note->body + note->length, data, taken);
    note->length += taken;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)user;
    if (!stream) return 0;
    roost_http2_finish(stream, code == NGHTTP2_REFUSED_STREAM);
    return 0;
}

static int on_received(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    struct connection *connection = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK) {
        roost_http2_add_note(connection->set, roost_http2_new_note(ROOST_HTTP2_PONG, connection->id, 0));
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        struct note *note = roost_http2_new_note(ROOST_HTTP2_GOAWAY, connection->id, 0);
        size_t length = frame->goaway.opaque_data_len;
        note->face.status = (int)frame->goaway.error_code;
        note->face.length = length < ROOST_HTTP2_BODY ? length : ROOST_HTTP2_BODY;
        if (length) memcpy(note->body, frame->goaway.opaque_data, note->face.length);
        roost_http2_add_note(connection->set, note);
    }
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    (void)user;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (stream) stream->has_left = 1;
    }
    return 0;
}

static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *user) {
    (void)code;
    (void)user;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (stream) settle(stream, ROOST_HTTP2_UNSEEN);
    }
    return 0;
}

int roost_http2_begin_session(struct connection *connection) {
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks)) return 0;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_received);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_not_sent);
    int failed = nghttp2_session_client_new(&connection->session, callbacks, connection);
    nghttp2_session_callbacks_del(callbacks);
    if (failed) return 0;
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    return !nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, 1);
}

static ssize_t read_payload(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t size, uint32_t *flags,
                            nghttp2_data_source *source, void *user) {
    struct stream *stream = source->ptr;
    (void)session;
    (void)id;
    (void)user;
    size_t left = stream->length - stream->sent;
    size_t count = left < size ? left : size;
    memcpy(buffer, stream->payload + stream->sent, count);
    stream->sent += count;
    if (stream->sent == stream->length) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)count;
}

// Excludes from the compression's table the headers that Apple names ("Sending notification requests to APNs"), and those that differ
// in each request and would push the others out of it.
static int is_indexed(const char *name) {
    static const char *const never[] = {":path", "authorization", "apns-id", "apns-expiration", "apns-collapse-id",
                                        "apns-request-id"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(name, never[i])) return 0;
    return 1;
}

static void add(nghttp2_nv *list, size_t *count, const char *name, const char *value, int indexes_all) {
    uint8_t flags = indexes_all || is_indexed(name) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX;
    list[(*count)++] = (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), flags};
}

int roost_http2_post(roost_http2 *set, uint64_t id, uint64_t request, const char *headers, size_t headers_length,
                    const unsigned char *body, size_t length, int indexes_all) {
    struct connection *connection = roost_http2_find(set, id);
    if (!connection || connection->state != OPEN || !nghttp2_session_check_request_allowed(connection->session))
        return -1;
    nghttp2_nv list[HEADERS];
    size_t count = 0;
    add(list, &count, ":method", "POST", indexes_all);
    add(list, &count, ":scheme", "https", indexes_all);
    add(list, &count, ":authority", connection->authority, indexes_all);
    for (size_t at = 0; at < headers_length && count < HEADERS;) {
        const char *name = headers + at;
        at += strlen(name) + 1;
        if (at >= headers_length) return -1;
        add(list, &count, name, headers + at, indexes_all);
        at += strlen(headers + at) + 1;
    }
    struct stream *stream = calloc(1, sizeof *stream + length);
    if (!stream) return -1;
    stream->connection = connection;
    stream->request = request;
    stream->length = length;
    memcpy(stream->payload, body, length);
    stream->note = roost_http2_new_note(ROOST_HTTP2_LOST, id, request);
    nghttp2_data_provider provider = {{.ptr = stream}, read_payload};
    stream->id = nghttp2_submit_request(connection->session, NULL, list, count, &provider, stream);
    if (stream->id < 0) {
        free(stream->note);
        free(stream);
        return -1;
    }
    stream->next = connection->streams;
    if (stream->next) stream->next->previous = stream;
    connection->streams = stream;
    return 0;
}

int roost_http2_cancel(roost_http2 *set, uint64_t id, uint64_t request) {
    struct connection *connection = roost_http2_find(set, id);
    if (!connection || connection->state != OPEN) return -1;
    for (struct stream *stream = connection->streams; stream; stream = stream->next) {
        if (stream->request != request || stream->is_settled) continue;
        int has_left = stream->has_left;
        stream->is_settled = 1; // freed when the stream closes
        free(stream->note);
        stream->note = NULL;
        nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
        return has_left;
    }
    return -1;
}

void roost_http2_ping(roost_http2 *set, uint64_t id) {
    struct connection *connection = roost_http2_find(set, id);
    if (connection && connection->state == OPEN) nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL);
}

uint32_t roost_http2_limit(roost_http2 *set, uint64_t id) {
    struct connection *connection = roost_http2_find(set, id);
    if (!connection || connection->state != OPEN) return 0;
    return nghttp2_session_get_remote_settings(connection->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}
