// posts: the least an HTTP server can do for short requests, to hold others against. Every request gets the same ready-made
// 202 without a body. One thread, epoll, recv(2) and send(2), no library.
//
//   posts -p PORT
//
// Invariants:
// - Of a request only its end is looked for: the empty line, and as many bytes behind it as Content-Length says.
// - As many answers are sent in one write as requests came in one read, in their order.
// - Nothing is queued and nothing allocated: a request that did not come whole in one read, or an answer that the socket
//   does not take at once, ends the connection.
// It trusts its client: whole requests of at most 64 KB, no chunks, nothing malformed.
//
//   cc -O2 -o posts posts.c
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INPUT = 65536, TOGETHER = 64 };

static char input[INPUT + 1];
static const char answer[] =
    "HTTP/1.1 202 Accepted\r\ncache-control: no-store\r\naccess-control-allow-origin: *\r\ncontent-length: 0\r\n\r\n";
static char answers[TOGETHER * sizeof answer];

// The length of the request at `text`; 0 where it is not whole.
static size_t length_of(const char *text, size_t available) {
    static const char name[] = "content-length:";
    const char *end = memmem(text, available, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t length = end + 4 - text;
    for (const char *line = text; line < end;) {
        if (!strncasecmp(line, name, sizeof name - 1)) length += strtoul(line + sizeof name - 1, NULL, 10);
        line = (const char *)memchr(line, '\n', end + 2 - line) + 1;
    }
    return length <= available ? length : 0;
}

// 0 ends the connection.
static int serve(int fd) {
    ssize_t received = recv(fd, input, INPUT, MSG_DONTWAIT);
    if (received < 0 && errno == EAGAIN) return 1;
    if (received <= 0) return 0;
    input[received] = 0;
    size_t at = 0, filled = 0;
    while (at < (size_t)received) {
        size_t length = length_of(input + at, received - at);
        if (!length || filled + sizeof answer > sizeof answers) return 0;
        memcpy(answers + filled, answer, sizeof answer - 1);
        filled += sizeof answer - 1;
        at += length;
    }
    return send(fd, answers, filled, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)filled;
}

int main(int argc, char **argv) {
    int port = 0, on = 1, option;
    while ((option = getopt(argc, argv, "p:")) != -1)
        if (option == 'p') port = atoi(optarg);
    if (port < 1) {
        fprintf(stderr, "usage: posts -p PORT\n");
        return 64;
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) {
        perror("posts: cannot listen");
        return 69;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[512];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, 512, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != listener) {
                if (!serve(events[i].data.fd)) close(events[i].data.fd);
                continue;
            }
            for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
                struct epoll_event added = {.events = EPOLLIN, .data.fd = fd};
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &added)) close(fd);
            }
        }
    }
}
