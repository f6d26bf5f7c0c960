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

struct lws_context *roost_context_create(uv_loop_t *loop, void *user) {
    void *loops[1] = {loop};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN |
                   LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    info.foreign_loops = loops;
    info.count_threads = 1;
    info.user = user;
    // One read takes everything a busy publisher sent at once; the buffer belongs to the context, not to the connection.
    info.pt_serv_buf_size = 65536;
    info.retry_and_idle_policy = &no_validity_timers;
    return lws_create_context(&info);
}

struct lws_vhost *roost_vhost_create(struct lws_context *context, const char *name, lws_callback_function *callback) {
    // lws keeps the pointers, the name's too, for the vhost's life, which is the process'. The caller's name is gone when this returns.
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
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.vhost_name = kept;
    info.protocols = table;
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

int roost_write_framed(struct lws *wsi, const unsigned char *bytes, size_t length) {
    return lws_write(wsi, (unsigned char *)bytes, length, LWS_WRITE_RAW);
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
