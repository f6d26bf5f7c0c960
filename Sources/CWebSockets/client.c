#include "CWebSockets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

struct roost_socket {
    struct lws_context *context;
    // lws keeps this pointer for the context's life.
    struct lws_protocols protocols[2];
};

static const lws_retry_bo_t no_validity_timers;

struct roost_socket *roost_socket_create(lws_callback_function *callback, void *user, int tls) {
    // For `top` and debuggers; otherwise the thread would keep its creator's name.
    prctl(PR_SET_NAME, "roost-socket");
    struct roost_socket *socket = calloc(1, sizeof *socket);
    if (!socket) return NULL;
    socket->protocols[0].name = "roost-client";
    socket->protocols[0].callback = callback;
    socket->protocols[0].rx_buffer_size = 16384;
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = socket->protocols;
    info.user = user;
    // One socket and lws' own pipe: without this, lws allocates tables for as many descriptors as the process may have.
    info.fd_limit_per_thread = 8;
    // The upgrade with its token is written in one piece of this buffer.
    info.pt_serv_buf_size = 32768;
    info.retry_and_idle_policy = &no_validity_timers;
    // Reads the system's certificates, which costs time and memory that a plain connection need not spend.
    if (tls) info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    socket->context = lws_create_context(&info);
    if (!socket->context) {
        free(socket);
        return NULL;
    }
    return socket;
}

void roost_socket_destroy(struct roost_socket *socket) {
    lws_context_destroy(socket->context);
    free(socket);
}

struct lws *roost_socket_connect(struct roost_socket *socket, const char *address, int port, const char *host,
                                 const char *path, int tls) {
    struct lws_client_connect_info info;
    memset(&info, 0, sizeof info);
    info.context = socket->context;
    info.address = address;
    info.host = host;
    info.port = port;
    info.path = path;
    info.ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT | (tls ? LCCSCF_USE_SSL : 0);
    info.local_protocol_name = "roost-client";
    // HTTP/2 has a different upgrade, which the hub does not speak.
    info.alpn = "http/1.1";
    return lws_client_connect_via_info(&info);
}

int roost_socket_service(struct roost_socket *socket) { return lws_service(socket->context, 0); }

void roost_socket_wake(struct roost_socket *socket) { lws_cancel_service(socket->context); }

int roost_socket_header(struct lws *wsi, void *in, size_t length, const char *name_with_colon, const char *value) {
    unsigned char **at = in;
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name_with_colon, (const unsigned char *)value,
                                       (int)strlen(value), at, *at + length);
}

int roost_socket_send(struct lws *wsi, const unsigned char *bytes, size_t length, int binary) {
    unsigned char *copy = malloc(LWS_PRE + length);
    if (!copy) return -1;
    if (length) memcpy(copy + LWS_PRE, bytes, length);
    int written = lws_write(wsi, copy + LWS_PRE, length, binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT);
    free(copy);
    return written < (int)length ? -1 : 0;
}

void roost_socket_say_goodbye(struct lws *wsi, int code) {
    lws_close_reason(wsi, (enum lws_close_status)code, NULL, 0);
}
