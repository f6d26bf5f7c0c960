// event_readers: many readers of one stream as events, and its writer. Says how long each piece took to each reader, from before
// it was sent to the hub.
//
//   event_readers -p PORT -s /streams/NAME -t TOKEN -n READERS -m PIECES [-r PER_SECOND] [-z BYTES]
//   event_readers -p PORT -e CHANNEL …         the broadcasts of a channel instead, as subscriptions over HTTP
//
// Without -r the next piece is sent when every reader has the last one. Prints `ready` when every reader was sent its first event,
// waits for a line of input, and prints one line of JSON in the end: microseconds.
//
// Invariants:
// - A piece is "t=NANOSECONDS;" of CLOCK_MONOTONIC and padding; a marker that is torn between two reads is put together from the
//   reader's own carry, so every reader counts every piece once.
// - The writer's connection is blocking and its answers are read whole before the next piece: one append is under way at a time.
//
//   cc -O2 -o event_readers event_readers.c
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 65536, CARRY = 40, INPUT = 1 << 20 };

struct reader {
    char carry[CARRY];
    int carried, has_begun;
    long pieces;
};

static struct reader readers[FILES];
static int epoll, begun;
static const char *first_event = "control";
static long deliveries, bytes_in;
static uint32_t *latencies;
static char input[INPUT + CARRY + 1];
static struct sockaddr_in hub;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void fail(const char *what) {
    printf("{\"error\": \"%s\"}\n", what);
    exit(1);
}

static int connected(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&hub, sizeof hub) < 0) fail("a connection was refused");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void count(struct reader *reader, const char *text, int64_t at) {
    int64_t taken = (at - strtoll(text, NULL, 10)) / 1000;
    latencies[deliveries++] = taken < 0 ? 0 : taken > UINT32_MAX ? UINT32_MAX : (uint32_t)taken;
    reader->pieces++;
}

static void read_events(int fd) {
    struct reader *reader = &readers[fd];
    memcpy(input, reader->carry, (size_t)reader->carried);
    ssize_t count_read = recv(fd, input + reader->carried, INPUT, MSG_DONTWAIT);
    if (count_read < 0 && errno == EAGAIN) return;
    if (count_read <= 0) fail("a reader's connection ended");
    bytes_in += count_read;
    int64_t at = now();
    char *end = input + reader->carried + count_read, *place = input;
    *end = 0;
    if (!reader->has_begun && memmem(input, (size_t)(end - input), first_event, strlen(first_event))) reader->has_begun = 1, begun++;
    reader->carried = 0;
    while ((place = memmem(place, (size_t)(end - place), "t=", 2))) {
        char *stop = memchr(place, ';', (size_t)(end - place));
        if (!stop) break;
        // The cursor of a control event has no such mark, and padding has neither.
        if (place[2] >= '0' && place[2] <= '9') count(reader, place + 2, at);
        place = stop;
    }
    if (place && end - place < CARRY) {
        reader->carried = (int)(end - place);
        memcpy(reader->carry, place, (size_t)reader->carried);
    } else if (!place && end[-1] == 't') {
        reader->carried = 1;
        reader->carry[0] = 't';
    }
}

static void turn(int milliseconds) {
    struct epoll_event events[512];
    int ready = epoll_wait(epoll, events, 512, milliseconds);
    for (int i = 0; i < ready; i++) read_events(events[i].data.fd);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int main(int count_of, char **words) {
    int port = 0, wanted = 1000, size = 16, option;
    long pieces = 100;
    double rate = 0;
    const char *path = "", *token = "", *channel = NULL;
    while ((option = getopt(count_of, words, "p:s:e:t:n:m:r:z:")) != -1) switch (option) {
        case 'e': channel = optarg; break;
        case 'p': port = atoi(optarg); break;
        case 's': path = optarg; break;
        case 't': token = optarg; break;
        case 'n': wanted = atoi(optarg); break;
        case 'm': pieces = atol(optarg); break;
        case 'r': rate = atof(optarg); break;
        case 'z': size = atoi(optarg); break;
        default: return 64;
        }
    setvbuf(stdout, NULL, _IOLBF, 0);
    hub = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    hub.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    epoll = epoll_create1(0);
    latencies = malloc(sizeof *latencies * (size_t)(wanted * (pieces + 1)));
    static char request[8192];
    char read_path[512], write_path[512];
    snprintf(read_path, sizeof read_path, channel ? "/api/broadcast/%s/events" : "%s?offset=now&live=sse", channel ? channel : path);
    snprintf(write_path, sizeof write_path, channel ? "/api/broadcast/%s/events/piece" : "%s", channel ? channel : path);
    if (channel) first_event = "connected";
    int length = snprintf(request, sizeof request,
        "GET %s HTTP/1.1\r\nhost: a\r\nauthorization: Bearer %s\r\n\r\n", read_path, token);
    for (int i = 0; i < wanted; i++) {
        int fd = connected();
        if (fd >= FILES || send(fd, request, (size_t)length, MSG_NOSIGNAL) != length) fail("a request was not taken");
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        if (i % 100 == 99) turn(0);
    }
    int64_t patience = now() + 60000000000LL;
    while (begun < wanted) {
        turn(100);
        if (now() > patience) fail("not every reader was sent its first event");
    }
    printf("ready\n");
    if (getchar() == EOF) return 0;

    int writer = connected();
    int64_t start = now(), due = start;
    bytes_in = 0;
    char body[4096], answer[4096];
    for (long piece = 0; piece < pieces; piece++) {
        while (rate > 0 && now() < due) turn((int)((due - now()) / 1000000));
        due += rate > 0 ? (int64_t)(1e9 / rate) : 0;
        int written = snprintf(body, sizeof body, channel ? "{\"p\":\"t=%lld;" : "t=%lld;", (long long)now());
        while (written < size) body[written++] = 'x';
        if (channel) written += snprintf(body + written, sizeof body - (size_t)written, "\"}");
        int head = snprintf(request, sizeof request,
            "POST %s HTTP/1.1\r\nhost: a\r\nauthorization: Bearer %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n",
            write_path, token, channel ? "application/json" : "text/plain", written);
        memcpy(request + head, body, (size_t)written);
        if (send(writer, request, (size_t)(head + written), MSG_NOSIGNAL) != head + written) fail("an append was not taken");
        ssize_t got = recv(writer, answer, sizeof answer - 1, 0);
        if (got <= 0 || strncmp(answer, channel ? "HTTP/1.1 202" : "HTTP/1.1 204", 12)) fail("an append was refused");
        patience = now() + 20000000000LL;
        while (rate == 0 && deliveries < (piece + 1) * wanted) {
            turn(100);
            if (now() > patience) fail("a piece did not reach every reader");
        }
    }
    patience = now() + 20000000000LL;
    while (deliveries < pieces * wanted) {
        turn(100);
        if (now() > patience) fail("a piece did not reach every reader");
    }
    double seconds = (double)(now() - start) / 1e9;
    qsort(latencies, (size_t)deliveries, sizeof *latencies, by_size);
    printf("{\"deliveries\": %ld, \"seconds\": %.3f, \"p50\": %u, \"p99\": %u, \"max\": %u, \"bytes\": %ld}\n", deliveries, seconds,
        latencies[deliveries / 2], latencies[deliveries * 99 / 100], latencies[deliveries - 1], bytes_in);
    return 0;
}
