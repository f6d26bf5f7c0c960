#include "http2_private.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads of one connection in one turn: the others need their share.
#define READS 16

// As in fetch.c: libcurl's own messages may quote parts of the URL.
static const char *words(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY: return "the proxy's name is not known";
    case CURLE_COULDNT_RESOLVE_HOST: return "the host's name is not known";
    case CURLE_COULDNT_CONNECT: return "nothing accepts connections there";
    case CURLE_OPERATION_TIMEDOUT: return "no connection in time";
    case CURLE_PEER_FAILED_VERIFICATION: return "the TLS certificate is not trusted";
    case CURLE_SSL_CACERT_BADFILE: return "the file of trusted certificates cannot be read";
    default: return curl_easy_strerror(code);
    }
}

static int name_authority(struct connection *connection, const char *url) {
    char *host = NULL, *port = NULL;
    CURLU *parts = curl_url();
    int is_good = parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
                  !curl_url_get(parts, CURLUPART_HOST, &host, 0);
    if (is_good && curl_url_get(parts, CURLUPART_PORT, &port, 0)) port = NULL;
    int length = is_good ? snprintf(connection->authority, sizeof connection->authority, "%s%s%s", host,
                                    port ? ":" : "", port ? port : "")
                         : 0;
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    return length > 0 && (size_t)length < sizeof connection->authority;
}

// RFC 9113, section 3.2.
static CURLcode offer_http2(CURL *curl, void *context, void *user) {
    static const unsigned char offer[] = {2, 'h', '2'};
    (void)curl;
    (void)user;
    return SSL_CTX_set_alpn_protos(context, offer, sizeof offer) ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

void roost_http2_set_guard(roost_http2 *set, roost_http2_guard *guard, void *context) {
    set->guard = guard;
    set->guard_context = context;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address) {
    struct connection *connection = user;
    (void)purpose;
    if (!connection->set->guard(connection->set->guard_context, &address->addr, address->addrlen)) {
        connection->is_refused = 1;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// libcurl passes the address that it is about to connect to (CURLOPT_OPENSOCKETFUNCTION(3)), so that a name cannot lead elsewhere than
// it did when it was checked.
static void put_under_guard(struct connection *connection) {
    curl_easy_setopt(connection->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(connection->easy, CURLOPT_OPENSOCKETDATA, connection);
    // Not even the environment's proxy.
    curl_easy_setopt(connection->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(connection->easy, CURLOPT_NOPROXY, "*");
}

uint64_t roost_http2_open(roost_http2 *set, const char *url, const char *ca_file, long timeout_ms) {
    struct connection *connection = calloc(1, sizeof *connection);
    CURL *curl = connection ? curl_easy_init() : NULL;
    if (!curl || !name_authority(connection, url)) {
        if (curl) curl_easy_cleanup(curl);
        free(connection);
        return 0;
    }
    connection->set = set;
    connection->id = ++set->last_id;
    connection->easy = curl;
    connection->socket = CURL_SOCKET_BAD;
    curl_easy_setopt(curl, CURLOPT_PRIVATE, connection);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    // If libcurl offered h2, it would put its own HTTP/2 between us and the connection, even with CONNECT_ONLY.
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_SSL_ENABLE_ALPN, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, offer_http2);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    // A proxy is used only as a tunnel: it must not see the provider token.
    curl_easy_setopt(curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L);
    // Keeps routers from dropping a silent connection, and detects a peer that is gone.
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 60L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 20L);
    if (ca_file) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
    if (set->guard) put_under_guard(connection);
    if (curl_multi_add_handle(set->multi, curl)) {
        curl_easy_cleanup(curl);
        free(connection);
        return 0;
    }
    connection->next = set->connections;
    set->connections = connection;
    return connection->id;
}

void roost_http2_connected(struct connection *connection, CURLcode code) {
    if (code != CURLE_OK) {
        roost_http2_end(connection, connection->is_refused ? "its address is not on the internet" : words(code));
        return;
    }
    if (curl_easy_getinfo(connection->easy, CURLINFO_ACTIVESOCKET, &connection->socket) != CURLE_OK ||
        connection->socket == CURL_SOCKET_BAD || !roost_http2_begin_session(connection)) {
        roost_http2_end(connection, "the connection cannot be used");
        return;
    }
    connection->state = OPEN;
    roost_http2_add_note(connection->set, roost_http2_new_note(ROOST_HTTP2_OPENED, connection->id, 0));
    roost_http2_flush(connection);
}

void roost_http2_read(struct connection *connection) {
    unsigned char bytes[16384];
    connection->has_more = 0;
    for (int round = 0; round < READS; round++) {
        size_t count = 0;
        CURLcode code = curl_easy_recv(connection->easy, bytes, sizeof bytes, &count);
        if (code == CURLE_AGAIN) return;
        if (code != CURLE_OK) return roost_http2_end(connection, words(code));
        if (count == 0) return roost_http2_end(connection, "the server ended it");
        ssize_t taken = nghttp2_session_mem_recv(connection->session, bytes, count);
        if (taken < 0)
            return roost_http2_end(connection, "the server does not speak HTTP/2 as it should");
    }
    connection->has_more = 1;
}

void roost_http2_flush(struct connection *connection) {
    for (;;) {
        if (!connection->out_length) {
            ssize_t count = nghttp2_session_mem_send(connection->session, &connection->out);
            if (count < 0) return roost_http2_end(connection, "HTTP/2 went wrong");
            connection->out_length = (size_t)count;
            if (!count) break;
        }
        size_t sent = 0;
        CURLcode code = curl_easy_send(connection->easy, connection->out, connection->out_length, &sent);
        if (code == CURLE_AGAIN) return;
        if (code != CURLE_OK) {
            // There may still be an answer to read, and a GOAWAY with the last request that the server processed.
            roost_http2_read(connection);
            if (connection->state == OPEN) roost_http2_end(connection, words(code));
            return;
        }
        connection->out += sent;
        connection->out_length -= sent;
    }
    if (!nghttp2_session_want_read(connection->session) && !nghttp2_session_want_write(connection->session))
        roost_http2_end(connection, "the server ended it");
}

void roost_http2_end(struct connection *connection, const char *text) {
    if (connection->state == OVER) return;
    connection->state = OVER;
    while (connection->streams) roost_http2_finish(connection->streams, 0);
    if (!text) return;
    struct note *note = roost_http2_new_note(ROOST_HTTP2_CLOSED, connection->id, 0);
    snprintf(note->text, sizeof note->text, "%s", text);
    roost_http2_add_note(connection->set, note);
}

void roost_http2_free(struct connection *connection) {
    if (connection->session) {
        nghttp2_session_set_user_data(connection->session, NULL);
        nghttp2_session_del(connection->session);
    }
    curl_multi_remove_handle(connection->set->multi, connection->easy);
    curl_easy_cleanup(connection->easy);
    free(connection);
}

void roost_http2_close(roost_http2 *set, uint64_t id) {
    struct connection *connection = roost_http2_find(set, id);
    if (!connection || connection->state == OVER) return;
    if (connection->state == OPEN && !connection->out_length) {
        nghttp2_session_terminate_session(connection->session, NGHTTP2_NO_ERROR);
        const uint8_t *bytes = NULL;
        size_t sent = 0;
        ssize_t count = nghttp2_session_mem_send(connection->session, &bytes);
        // A courtesy: whether the socket accepts it makes no difference to us.
        if (count > 0) (void)curl_easy_send(connection->easy, bytes, (size_t)count, &sent);
    }
    roost_http2_end(connection, NULL);
}
