#define _GNU_SOURCE
#include "CWebSockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// The default policy keeps a ping timer per connection in one sorted list: a connect costs 36 / 93 / 179 us at 1k / 10k
// / 19k sockets. Zeroed, it stays at 30 (notes/libwebsockets.md); pings follow our own clock.
static const lws_retry_bo_t no_validity_timers;

struct lws_context *roost_context_create(uv_loop_t *loop, void *user, int tls) {
    void *loops[1] = {loop};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN |
                   LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    if (tls) info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.foreign_loops = loops;
    info.count_threads = 1;
    info.user = user;
    // One read takes everything a busy publisher sent at once; the buffer belongs to the context, not to the connection.
    info.pt_serv_buf_size = 65536;
    // A JWT in a query string can be long.
    info.max_http_header_data = 16384;
    info.retry_and_idle_policy = &no_validity_timers;
    return lws_create_context(&info);
}

struct lws_vhost *roost_vhost_create(struct lws_context *context, const char *name, lws_callback_function *callback,
                                     int tls) {
    // lws keeps the pointers, including the name's, for the vhost's life, which is the process'. The caller's name is
    // gone when this returns.
    struct lws_protocols *table = calloc(2, sizeof *table);
    char *kept = strdup(name);
    if (!table || !kept) {
        free(table);
        free(kept);
        return NULL;
    }
    table[0].name = kept;
    table[0].callback = callback;
    table[0].per_session_data_size = 8;
    // Memory per connection follows this: 64 -> 1.5 KB, 1024 -> 2.5 KB. Larger messages arrive in pieces.
    table[0].rx_buffer_size = 256;
    table[0].tx_packet_size = 65536;
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    // lws sets up TLS only for servers, and it looks up a connection's vhost, by the names in the handshake and in the
    // Host header, among those with the same port: so the two kinds have different ports.
    info.port = tls ? CONTEXT_PORT_NO_LISTEN_SERVER : CONTEXT_PORT_NO_LISTEN;
    info.vhost_name = kept;
    info.protocols = table;
    if (tls) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX |
                        LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
        // If both ends know HTTP/2, they would negotiate it, and it upgrades to WebSockets differently (RFC 8441).
        info.alpn = "http/1.1";
    }
    info.retry_and_idle_policy = &no_validity_timers;
    info.timeout_secs = 15;
    return lws_create_vhost(context, &info);
}

static void (*log_sink)(int level, const char *line);

// lws logs this as an error for every socket that it is given together with bytes already read.
static void pass_on(int level, const char *line) {
    if (!strstr(line, "adopt_socket_readbuf: calling service")) log_sink(level, line);
}

void roost_log_to(void (*sink)(int level, const char *line)) {
    log_sink = sink;
    lws_set_log_level(LLL_ERR | LLL_WARN, pass_on);
}

int roost_header(struct lws *wsi, enum lws_token_indexes token, char *buffer, int size) {
    int length = lws_hdr_total_length(wsi, token);
    if (length <= 0) return 0;
    if (length >= size) return -1;
    return lws_hdr_copy(wsi, buffer, size, token);
}

int roost_custom_header(struct lws *wsi, const char *name, char *buffer, int size) {
    int length = lws_hdr_custom_length(wsi, name, (int)strlen(name));
    if (length <= 0) return 0;
    if (length >= size) return -1;
    return lws_hdr_custom_copy(wsi, buffer, size, name, (int)strlen(name));
}

int roost_query_argument(struct lws *wsi, const char *name, char *buffer, int size) {
    const char *value = lws_get_urlarg_by_name(wsi, name, buffer, size);
    if (!value) return -1;
    size_t length = strlen(value);
    memmove(buffer, value, length + 1);
    return (int)length;
}

int roost_method(struct lws *wsi, char *path, int size) {
    char *uri;
    int length = 0, method = lws_http_get_uri_and_method(wsi, &uri, &length);
    if (method < 0 || length >= size) return -1;
    memcpy(path, uri, (size_t)length);
    path[length] = 0;
    return method;
}

int roost_write_framed(struct lws *wsi, const unsigned char *bytes, size_t length) {
    return lws_write(wsi, (unsigned char *)bytes, length, LWS_WRITE_RAW);
}

int roost_is_plain(struct lws *wsi) {
    return !lws_is_ssl(wsi);
}

int roost_unread(int fd) {
    int count = 0;
    return ioctl(fd, FIONREAD, &count) ? 0 : count;
}

static int listen_on(const char *host, int port, int backlog, int shared) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    char service[8];
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &found)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int one = 1, fd = -1, failure = EADDRNOTAVAIL;
    for (struct addrinfo *a = found; a; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (shared) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
        if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, backlog)) break;
        failure = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd < 0) errno = failure;
    return fd;
}

int roost_probe_port(const char *host, int port) {
    int fd = listen_on(host, port, 1, 0);
    if (fd < 0) return -1;
    close(fd);
    return 0;
}

int roost_listen(const char *host, int port, int backlog) {
    return listen_on(host, port, backlog, 1);
}

int roost_accept(int listener) {
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}
