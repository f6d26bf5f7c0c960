#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls.h"

enum {
    // The largest payload of a TLS record (RFC 8446, section 5.1).
    RECORD = 16384,
    // A handshake takes two or three steps.
    HANDSHAKE_STEPS_OF_A_TURN = 8,
    // For one tunnel. A client may send records of one byte, or of none.
    READS_OF_A_TURN = 256,
    // Seconds for the last output after the loop has ended its side: without an acknowledgement, and in total.
    STILL_SECONDS = 5,
    ENDING_SECONDS = 60,
};

struct side {
    uv_poll_t poll;
    int fd;
    // The events that libuv waits for.
    int events;
};

// Bytes that a side did not take. Allocated only while there are some.
struct rest {
    unsigned char *bytes;
    size_t start, end;
};

struct roost_tunnel {
    struct roost_tunnels *tunnels;
    SSL *ssl;
    struct side client, plain;
    struct rest to_client, to_plain;
    // libuv handles not closed yet, plus one for the owner.
    int references;
    // The owner's value for has_room, while it waits for the client's socket to take more; negative otherwise.
    int waiting;
    // The event that the handshake waits for; zero once it is complete.
    int handshake_waits_for;
    // The client sends no more: its end was read, or the connection broke.
    unsigned client_ended : 1;
    unsigned plain_was_told : 1;
    // The loop has shut or closed its end. plain_ended: everything that the loop sent before was read, too.
    unsigned plain_is_ending : 1;
    unsigned plain_ended : 1;
    unsigned client_was_told : 1;
    // The loop has closed its end.
    unsigned plain_is_gone : 1;
    // TLS is unusable: the connection broke, or the client violated the protocol.
    unsigned is_broken : 1;
    // Reading resumes when the client's socket is writable.
    unsigned read_waits_for_write : 1;
    // The owner's next bytes must follow what is in the socket pair.
    unsigned is_behind : 1;
    unsigned is_over : 1;
    // Since the loop ended its side: the client's acknowledged bytes at the last look, and the seconds that passed.
    long long acknowledged;
    int seconds, still_seconds;
    // The list of tunnels whose plain side is ending.
    struct roost_tunnel *previous, *next;
};

struct roost_tunnels {
    uv_loop_t *loop;
    SSL_CTX *context;
    struct roost_tunnel_owner owner;
    int handshake_steps;
    struct roost_tunnel *ending;
    unsigned char scratch[RECORD];
};

static void client_is_ready(uv_poll_t *handle, int status, int events);
static void plain_is_ready(uv_poll_t *handle, int status, int events);

// Ends

void roost_tunnel_release(struct roost_tunnel *tunnel) {
    if (!--tunnel->references) free(tunnel);
}

static void forget_handle(uv_handle_t *handle) { roost_tunnel_release(handle->data); }

static void close_side(struct side *side) {
    uv_close((uv_handle_t *)&side->poll, forget_handle);
    close(side->fd);
}

static void drop(struct rest *rest) {
    free(rest->bytes);
    *rest = (struct rest){0};
}

// Starts the limited time that the tunnel has left.
static void begin_ending(struct roost_tunnel *tunnel) {
    struct roost_tunnels *tunnels = tunnel->tunnels;
    if (tunnel->plain_is_ending) return;
    tunnel->plain_is_ending = 1;
    tunnel->acknowledged = roost_bytes_acked(tunnel->client.fd);
    tunnel->next = tunnels->ending;
    if (tunnel->next) tunnel->next->previous = tunnel;
    tunnels->ending = tunnel;
}

static void end(struct roost_tunnel *tunnel) {
    if (tunnel->is_over) return;
    tunnel->is_over = 1;
    if (tunnel->next) tunnel->next->previous = tunnel->previous;
    if (tunnel->previous) tunnel->previous->next = tunnel->next;
    else if (tunnel->tunnels->ending == tunnel) tunnel->tunnels->ending = tunnel->next;
    SSL_free(tunnel->ssl);
    drop(&tunnel->to_client);
    drop(&tunnel->to_plain);
    close_side(&tunnel->client);
    close_side(&tunnel->plain);
}

// OpenSSL may have just sent an alert. The client's input is still read and dropped for a while: closing a socket with
// unread input sends a reset, which may overtake the alert.
static void break_off(struct roost_tunnel *tunnel) {
    if (tunnel->is_broken) return;
    tunnel->is_broken = 1;
    drop(&tunnel->to_client);
    drop(&tunnel->to_plain);
    shutdown(tunnel->client.fd, SHUT_WR);
    shutdown(tunnel->plain.fd, SHUT_WR);
    tunnel->client_was_told = tunnel->plain_was_told = 1;
}

// Called before each call whose result SSL_get_error explains. Clearing the queue takes longer than checking that it is
// empty.
static void forget_errors(void) {
    if (ERR_peek_error()) ERR_clear_error();
}

// From the client

// Appends bytes to a rest. False if out of memory.
static int keep(struct rest *rest, const unsigned char *bytes, size_t count) {
    unsigned char *longer = realloc(rest->bytes, rest->end + count);
    if (!longer) return 0;
    memcpy(longer + rest->end, bytes, count);
    rest->bytes = longer;
    rest->end += count;
    return 1;
}

// Returns how many bytes the loop's end took; -1 if it is closed.
static ssize_t send_plain(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    ssize_t sent = send(tunnel->plain.fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM ? 0 : -1;
}

static void lose_plain(struct roost_tunnel *tunnel) {
    tunnel->plain_is_gone = 1;
    drop(&tunnel->to_plain);
}

// False if something is left.
static int flush_to_plain(struct roost_tunnel *tunnel) {
    struct rest *rest = &tunnel->to_plain;
    if (!rest->bytes) return 1;
    ssize_t sent = send_plain(tunnel, rest->bytes + rest->start, rest->end - rest->start);
    if (sent < 0) lose_plain(tunnel);
    else if ((rest->start += (size_t)sent) == rest->end) drop(rest);
    return !rest->bytes;
}

// Reads and drops input that is no longer needed.
static void discard_input(struct roost_tunnel *tunnel) {
    for (int round = 0; round < 4; round++) {
        ssize_t count = recv(tunnel->client.fd, tunnel->tunnels->scratch, RECORD, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) tunnel->client_ended = 1;
        if (count < RECORD) return;
    }
}

// Decrypts available input, at most one record's length. Sets `waits` if more needs another event first.
static size_t decrypt(struct roost_tunnel *tunnel, int *reads, int *waits) {
    unsigned char *scratch = tunnel->tunnels->scratch;
    size_t count = 0;
    while (count < RECORD && !*waits) {
        if (!--*reads) {
            // Let other tunnels have their turn. libuv does not see the bytes that OpenSSL holds, so a writable socket
            // resumes the read.
            tunnel->read_waits_for_write = 1;
            *waits = 1;
            break;
        }
        forget_errors();
        errno = 0;
        int result = SSL_read(tunnel->ssl, scratch + count, (int)(RECORD - count));
        if (result > 0) {
            count += (size_t)result;
            // libuv reports it when the socket has more.
            if (!SSL_has_pending(tunnel->ssl)) *waits = 1;
            continue;
        }
        switch (SSL_get_error(tunnel->ssl, result)) {
        case SSL_ERROR_WANT_READ:
            // A record without data leaves errno untouched, and other records may follow it.
            if (errno == EAGAIN || errno == EINTR) *waits = 1;
            break;
        case SSL_ERROR_WANT_WRITE:
            tunnel->read_waits_for_write = 1;
            *waits = 1;
            break;
        case SSL_ERROR_ZERO_RETURN:
            tunnel->client_ended = 1;
            *waits = 1;
            break;
        default:
            break_off(tunnel);
            *waits = 1;
        }
    }
    return count;
}

// Passes the client's bytes on until none are left or the loop's end is full; while that is full, nothing more is read.
static void pass_in(struct roost_tunnel *tunnel) {
    int waits = 0, reads = READS_OF_A_TURN;
    tunnel->read_waits_for_write = 0;
    while (flush_to_plain(tunnel)) {
        if (tunnel->is_broken || tunnel->plain_is_gone) return discard_input(tunnel);
        if (tunnel->client_ended) {
            if (!tunnel->plain_was_told) shutdown(tunnel->plain.fd, SHUT_WR);
            tunnel->plain_was_told = 1;
            return;
        }
        if (waits) return;
        size_t count = decrypt(tunnel, &reads, &waits);
        if (tunnel->is_broken) return;
        if (count) {
            ssize_t sent = send_plain(tunnel, tunnel->tunnels->scratch, count);
            if (sent < 0) lose_plain(tunnel);
            else if ((size_t)sent < count && !keep(&tunnel->to_plain, tunnel->tunnels->scratch + sent, count - (size_t)sent))
                break_off(tunnel);
        }
    }
}

// To the client

// False if the client's socket is full. The same bytes must then be written again (SSL_write(3)).
static int encrypt(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    forget_errors();
    int result = SSL_write(tunnel->ssl, bytes, (int)count);
    if (result > 0) return 1;
    int error = SSL_get_error(tunnel->ssl, result);
    if (error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ) break_off(tunnel);
    return 0;
}

static size_t least(size_t one, size_t other) { return one < other ? one : other; }

// False if something is left.
static int flush_to_client(struct roost_tunnel *tunnel) {
    struct rest *rest = &tunnel->to_client;
    while (rest->bytes) {
        size_t count = least(rest->end - rest->start, RECORD);
        if (!encrypt(tunnel, rest->bytes + rest->start, count)) return 0;
        if ((rest->start += count) == rest->end) drop(rest);
    }
    return 1;
}

static void say_goodbye(struct roost_tunnel *tunnel) {
    if (tunnel->client_was_told) return;
    forget_errors();
    int result = SSL_shutdown(tunnel->ssl);
    if (result < 0 && SSL_get_error(tunnel->ssl, result) == SSL_ERROR_WANT_WRITE) return;
    shutdown(tunnel->client.fd, SHUT_WR);
    tunnel->client_was_told = 1;
}

// Passes the loop's bytes on until none are left or the client's socket is full.
static void pass_out(struct roost_tunnel *tunnel) {
    unsigned char *scratch = tunnel->tunnels->scratch;
    for (;;) {
        struct rest *rest = &tunnel->to_client;
        if (!flush_to_client(tunnel)) return;
        if (tunnel->plain_ended) return say_goodbye(tunnel);
        ssize_t count = recv(tunnel->plain.fd, scratch, RECORD, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) {
            tunnel->plain_ended = 1;
            begin_ending(tunnel);
            continue;
        }
        if (!encrypt(tunnel, scratch, (size_t)count)) {
            if (!tunnel->is_broken && !keep(rest, scratch, (size_t)count)) break_off(tunnel);
            return;
        }
        if (count < RECORD) return;
    }
}

// Drops what the loop still sends on a broken connection.
static void discard_output(struct roost_tunnel *tunnel) {
    ssize_t count;
    do count = recv(tunnel->plain.fd, tunnel->tunnels->scratch, RECORD, MSG_DONTWAIT);
    while (count > 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    tunnel->plain_ended = 1;
    begin_ending(tunnel);
}

// Events

static void shake_hands(struct roost_tunnel *tunnel) {
    if (tunnel->tunnels->handshake_steps == 0) return;
    tunnel->tunnels->handshake_steps--;
    forget_errors();
    int result = SSL_do_handshake(tunnel->ssl);
    if (result == 1) {
        tunnel->handshake_waits_for = 0;
        return pass_in(tunnel);
    }
    switch (SSL_get_error(tunnel->ssl, result)) {
    case SSL_ERROR_WANT_READ: tunnel->handshake_waits_for = UV_READABLE; break;
    case SSL_ERROR_WANT_WRITE: tunnel->handshake_waits_for = UV_WRITABLE; break;
    default:
        tunnel->handshake_waits_for = 0;
        break_off(tunnel);
    }
}

// Nonzero if libuv fails.
static int wait_for(struct side *side, int events, uv_poll_cb ready) {
    if (events == side->events) return 0;
    side->events = events;
    return events ? uv_poll_start(&side->poll, events, ready) : uv_poll_stop(&side->poll);
}

static int if_true(int condition, int event) { return condition ? event : 0; }

// Waits for the events that both sides need, or ends the tunnel.
static void go_on(struct roost_tunnel *tunnel) {
    if (tunnel->is_over) return;
    if (tunnel->client_ended && tunnel->plain_ended && tunnel->client_was_told) return end(tunnel);
    int client, plain;
    if (tunnel->handshake_waits_for) {
        client = tunnel->handshake_waits_for;
        plain = UV_READABLE;
    } else {
        int is_full = tunnel->to_client.bytes || tunnel->waiting >= 0 || (tunnel->plain_ended && !tunnel->client_was_told) || tunnel->read_waits_for_write;
        client = if_true(!tunnel->client_ended && !tunnel->to_plain.bytes && !tunnel->read_waits_for_write, UV_READABLE)
            | if_true(is_full && !tunnel->is_broken, UV_WRITABLE);
        plain = if_true(!tunnel->plain_ended && !tunnel->to_client.bytes, UV_READABLE)
            | if_true(tunnel->to_plain.bytes != NULL, UV_WRITABLE)
            // While the client does not take output, only this event reveals that the loop has ended its side.
            | if_true(tunnel->to_client.bytes && !tunnel->plain_is_ending, UV_DISCONNECT);
    }
    if (wait_for(&tunnel->client, client, client_is_ready) || wait_for(&tunnel->plain, plain, plain_is_ready)) end(tunnel);
}

// The owner may send at once, and wait again.
static void give_room(struct roost_tunnel *tunnel) {
    int waiting = tunnel->waiting;
    tunnel->waiting = -1;
    tunnel->tunnels->owner.has_room(tunnel->tunnels->owner.user, waiting);
}

static void client_is_ready(uv_poll_t *handle, int status, int events) {
    struct roost_tunnel *tunnel = handle->data;
    tunnel->tunnels->owner.begins(tunnel->tunnels->owner.user);
    if (status < 0) {
        // libuv no longer waits for a broken socket.
        tunnel->client.events = 0;
        tunnel->client_ended = 1;
        tunnel->handshake_waits_for = 0;
        break_off(tunnel);
    } else if (tunnel->handshake_waits_for) {
        shake_hands(tunnel);
    } else {
        if (events & UV_WRITABLE && !tunnel->is_broken) pass_out(tunnel);
        if (tunnel->waiting >= 0 && !tunnel->to_client.bytes && !tunnel->is_broken) give_room(tunnel);
        if (events & UV_READABLE || tunnel->read_waits_for_write) pass_in(tunnel);
    }
    go_on(tunnel);
}

static void plain_is_ready(uv_poll_t *handle, int status, int events) {
    struct roost_tunnel *tunnel = handle->data;
    tunnel->tunnels->owner.begins(tunnel->tunnels->owner.user);
    // Before the handshake is complete, the loop's end can only close.
    if (tunnel->handshake_waits_for) return end(tunnel);
    if (status < 0) {
        tunnel->plain.events = 0;
        lose_plain(tunnel);
    }
    if (events & UV_DISCONNECT || status < 0) begin_ending(tunnel);
    if (events & UV_WRITABLE && !tunnel->is_broken) pass_in(tunnel);
    if (tunnel->is_broken) discard_output(tunnel);
    else if (events & UV_READABLE || status < 0) pass_out(tunnel);
    go_on(tunnel);
}

// For the loop

struct roost_tunnels *roost_tunnels_create(uv_loop_t *loop, struct roost_certificate *const *presented,
                                           struct roost_tunnel_owner owner) {
    struct roost_tunnels *tunnels = calloc(1, sizeof *tunnels);
    if (!tunnels) return NULL;
    tunnels->context = roost_tls_server(presented);
    if (!tunnels->context) {
        free(tunnels);
        return NULL;
    }
    tunnels->loop = loop;
    tunnels->owner = owner;
    roost_tunnels_begin_turn(tunnels);
    return tunnels;
}

// Returns false, with nothing left attached, if memory runs out or libuv fails.
static int attach(struct roost_tunnel *tunnel, int client, int plain) {
    uv_loop_t *loop = tunnel->tunnels->loop;
    tunnel->client.fd = client;
    tunnel->plain.fd = plain;
    tunnel->ssl = SSL_new(tunnel->tunnels->context);
    if (!tunnel->ssl || SSL_set_fd(tunnel->ssl, client) != 1 || uv_poll_init(loop, &tunnel->client.poll, client)) return 0;
    tunnel->client.poll.data = tunnel;
    tunnel->references = 1;
    if (uv_poll_init(loop, &tunnel->plain.poll, plain)) return 0;
    tunnel->plain.poll.data = tunnel;
    tunnel->references = 3;
    return 1;
}

struct roost_tunnel *roost_tunnels_open(struct roost_tunnels *tunnels, int client, int *plain) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) return NULL;
    struct roost_tunnel *tunnel = calloc(1, sizeof *tunnel);
    if (tunnel) tunnel->tunnels = tunnels;
    if (!tunnel || !attach(tunnel, client, pair[1])) {
        if (tunnel) SSL_free(tunnel->ssl);
        if (tunnel && tunnel->references) uv_close((uv_handle_t *)&tunnel->client.poll, forget_handle);
        else free(tunnel);
        close(pair[0]);
        close(pair[1]);
        errno = ENOMEM;
        return NULL;
    }
    SSL_set_accept_state(tunnel->ssl);
    tunnel->handshake_waits_for = UV_READABLE;
    tunnel->waiting = -1;
    go_on(tunnel);
    *plain = pair[0];
    return tunnel;
}

int roost_tunnel_client(const struct roost_tunnel *tunnel) { return tunnel->client.fd; }

static int is_of_use(const struct roost_tunnel *tunnel) {
    return !tunnel->is_over && !tunnel->is_broken && !tunnel->plain_ended && !tunnel->handshake_waits_for;
}

long roost_tunnel_send(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    if (!is_of_use(tunnel)) return -1;
    if (tunnel->is_behind && !tunnel->to_client.bytes) {
        pass_out(tunnel);
        tunnel->is_behind = tunnel->to_client.bytes != NULL;
    }
    size_t taken = 0;
    while (taken < count && is_of_use(tunnel) && !tunnel->to_client.bytes) {
        size_t next = least(count - taken, RECORD);
        if (!encrypt(tunnel, bytes + taken, next) && !tunnel->is_broken && !keep(&tunnel->to_client, bytes + taken, next))
            break_off(tunnel);
        taken += next;
    }
    if (taken == count && !tunnel->to_client.bytes && !tunnel->is_broken) return (long)taken;
    go_on(tunnel);
    return is_of_use(tunnel) ? (long)taken : -1;
}

void roost_tunnel_put_behind(struct roost_tunnel *tunnel) { tunnel->is_behind = 1; }

int roost_tunnel_keep(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    if (!is_of_use(tunnel)) return -1;
    int is_kept = keep(&tunnel->to_client, bytes, count);
    if (!is_kept) break_off(tunnel);
    go_on(tunnel);
    return is_kept ? 0 : -1;
}

void roost_tunnel_await_room(struct roost_tunnel *tunnel, int waiting) {
    tunnel->waiting = waiting;
    go_on(tunnel);
}

void roost_tunnels_begin_turn(struct roost_tunnels *tunnels) { tunnels->handshake_steps = HANDSHAKE_STEPS_OF_A_TURN; }

void roost_tunnels_tick(struct roost_tunnels *tunnels) {
    for (struct roost_tunnel *tunnel = tunnels->ending, *next; tunnel; tunnel = next) {
        next = tunnel->next;
        long long acknowledged = roost_bytes_acked(tunnel->client.fd);
        tunnel->still_seconds = acknowledged != tunnel->acknowledged ? 0 : tunnel->still_seconds + 1;
        tunnel->acknowledged = acknowledged;
        if (tunnel->still_seconds >= STILL_SECONDS || ++tunnel->seconds >= ENDING_SECONDS) end(tunnel);
    }
}

int roost_tunnels_make_room(struct roost_tunnels *tunnels) {
    int count = 0;
    for (struct roost_tunnel *tunnel = tunnels->ending, *next; tunnel; tunnel = next) {
        next = tunnel->next;
        end(tunnel);
        count++;
    }
    return count;
}
