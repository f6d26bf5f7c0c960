// limit: the least a WebSocket fan-out server can do, to hold others against. Every text frame that comes in goes out
// to every socket that has been upgraded, ready-made, with send(2). One thread, epoll, no library but libcrypto's SHA-1.
//
//   limit -p PORT [-k MESSAGES]     up to MESSAGES frames that came in together share one write per socket (1)
//
// Invariants:
// - members[0 ..< member_count] are the upgraded sockets, each once; peers[fd].place is a member's place in it.
// - A frame is framed once, however many sockets get it, and nothing is copied or allocated per socket.
// - A socket has all of a write or is closed: nothing is queued here, so no reader can be given half a frame.
// - The rest of a frame that has not all come in is kept for its socket alone (peers[fd].rest), and only while it is.
// It trusts its client: whole handshakes, masked frames of at most 64 KB, no fragments, no extensions.
//
//   cc -O2 -o limit limit.c -lcrypto
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILES = 65536, FRAME_LIMIT = 65536 };

struct peer {
    int place;
    bool is_member;
    uint32_t rest_length;
    uint8_t *rest;
};

static struct peer peers[FILES];
static int members[FILES], member_count, epoll, together = 1;
static uint8_t input[4 * FRAME_LIMIT], output[4 * FRAME_LIMIT];

static void leave(int fd) {
    struct peer *peer = &peers[fd];
    if (peer->is_member) {
        int last = members[--member_count];
        members[peer->place] = last;
        peers[last].place = peer->place;
    }
    free(peer->rest);
    *peer = (struct peer){0};
    close(fd);
}

static void send_to_all(const uint8_t *frames, size_t length) {
    // Backwards, because leaving puts the last member into the place of the one that leaves.
    for (int i = member_count - 1; i >= 0; i--)
        if (send(members[i], frames, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length) leave(members[i]);
}

static void join(int fd, const char *request) {
    static const char name[] = "sec-websocket-key:", magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const char *key = strcasestr(request, name);
    if (!key) {
        leave(fd);
        return;
    }
    key += sizeof name - 1;
    key += strspn(key, " ");
    char text[128], answer[256];
    uint8_t digest[SHA_DIGEST_LENGTH];
    char accept[4 * (SHA_DIGEST_LENGTH + 2) / 3 + 1];
    int length = snprintf(text, sizeof text, "%.24s%s", key, magic);
    SHA1((uint8_t *)text, length, digest);
    EVP_EncodeBlock((uint8_t *)accept, digest, sizeof digest);
    length = snprintf(answer, sizeof answer,
                      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Accept: %s\r\n\r\n", accept);
    if (send(fd, answer, length, MSG_NOSIGNAL) != length) {
        leave(fd);
        return;
    }
    peers[fd].is_member = true;
    peers[fd].place = member_count;
    members[member_count++] = fd;
}

// Reframes the payload at `from` as a server's text frame at `to`; returns its length.
static size_t reframe(uint8_t *to, const uint8_t *from, const uint8_t *mask, size_t length) {
    size_t head = 2;
    to[0] = 0x81;
    if (length < 126) {
        to[1] = length;
    } else {
        to[1] = 126;
        to[2] = length >> 8;
        to[3] = length;
        head = 4;
    }
    for (size_t i = 0; i < length; i++) to[head + i] = from[i] ^ mask[i & 3];
    return head + length;
}

static void take(int fd, size_t length) {
    size_t at = 0, filled = 0;
    int waiting = 0;
    for (;;) {
        size_t left = length - at, head = 6;
        const uint8_t *frame = input + at;
        if (left < head) break;
        size_t size = frame[1] & 127;
        if (size == 126) {
            head = 8;
            if (left < head) break;
            size = frame[2] << 8 | frame[3];
        }
        if (left < head + size) break;
        if ((frame[0] & 15) == 8) {
            leave(fd);
            return;
        }
        if ((frame[0] & 15) <= 2) {
            filled += reframe(output + filled, frame + head, frame + head - 4, size);
            waiting++;
        }
        at += head + size;
        if (waiting == together || filled > sizeof output - FRAME_LIMIT - 4) {
            send_to_all(output, filled);
            filled = waiting = 0;
        }
    }
    if (filled) send_to_all(output, filled);
    if (at < length && peers[fd].is_member) {
        peers[fd].rest_length = length - at;
        peers[fd].rest = malloc(length - at);
        memcpy(peers[fd].rest, input + at, length - at);
    }
}

static void serve(int fd) {
    struct peer *peer = &peers[fd];
    size_t kept = peer->rest_length;
    if (kept) memcpy(input, peer->rest, kept);
    ssize_t received = recv(fd, input + kept, sizeof input - kept - 1, MSG_DONTWAIT);
    // The event was for a socket that has left meanwhile, and whose number another one has got.
    if (received < 0 && errno == EAGAIN) return;
    free(peer->rest);
    peer->rest = NULL;
    peer->rest_length = 0;
    if (received <= 0) {
        leave(fd);
        return;
    }
    input[kept + received] = 0;
    if (peer->is_member) take(fd, kept + received);
    else join(fd, (char *)input);
}

static void accept_all(int listener) {
    static const int on = 1;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (fd >= FILES || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) close(fd);
    }
}

int main(int argc, char **argv) {
    int port = 0, on = 1, option;
    while ((option = getopt(argc, argv, "p:k:")) != -1) {
        if (option == 'p') port = atoi(optarg);
        else if (option == 'k') together = atoi(optarg);
    }
    if (port < 1 || together < 1) {
        fprintf(stderr, "usage: limit -p PORT [-k MESSAGES]\n");
        return 64;
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) {
        perror("limit: cannot listen");
        return 69;
    }
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[512];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, 512, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener) accept_all(listener);
            else serve(events[i].data.fd);
        }
    }
}
