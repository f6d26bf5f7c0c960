#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tunnel.h"

enum {
    // For one tunnel. A client may send records of one byte, or of none.
    READS_OF_A_TURN = 256,
};

static void drop(struct rest *rest) {
    free(rest->bytes);
    *rest = (struct rest){0};
}

void roost_tunnel_drop_rests(struct roost_tunnel *tunnel) {
    drop(&tunnel->to_client);
    drop(&tunnel->to_plain);
}

void roost_tunnel_begin_ending(struct roost_tunnel *tunnel) {
    struct roost_tunnels *tunnels = tunnel->tunnels;
    if (tunnel->plain_is_ending) return;
    tunnel->plain_is_ending = 1;
    tunnel->acknowledged = roost_bytes_acked(tunnel->client.fd);
    tunnel->next = tunnels->ending;
    if (tunnel->next) tunnel->next->previous = tunnel;
    tunnels->ending = tunnel;
}

// OpenSSL may have just sent an alert. The client's input is still read and dropped for a while: closing a socket with
// unread input sends a reset, which may overtake the alert.
void roost_tunnel_break_off(struct roost_tunnel *tunnel) {
    if (tunnel->is_broken) return;
    tunnel->is_broken = 1;
    roost_tunnel_drop_rests(tunnel);
    shutdown(tunnel->client.fd, SHUT_WR);
    shutdown(tunnel->plain.fd, SHUT_WR);
    tunnel->client_was_told = tunnel->plain_was_told = 1;
}

// Called before each call whose result SSL_get_error explains. Clearing the queue takes longer than checking that it is
// empty.
void roost_tunnel_forget_errors(void) {
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

void roost_tunnel_lose_plain(struct roost_tunnel *tunnel) {
    tunnel->plain_is_gone = 1;
    drop(&tunnel->to_plain);
}

// False if something is left.
static int flush_to_plain(struct roost_tunnel *tunnel) {
    struct rest *rest = &tunnel->to_plain;
    if (!rest->bytes) return 1;
    ssize_t sent = send_plain(tunnel, rest->bytes + rest->start, rest->end - rest->start);
    if (sent < 0) roost_tunnel_lose_plain(tunnel);
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
        roost_tunnel_forget_errors();
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
            roost_tunnel_break_off(tunnel);
            *waits = 1;
        }
    }
    return count;
}

void roost_tunnel_pass_in(struct roost_tunnel *tunnel) {
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
            if (sent < 0) roost_tunnel_lose_plain(tunnel);
            else if ((size_t)sent < count && !keep(&tunnel->to_plain, tunnel->tunnels->scratch + sent, count - (size_t)sent))
                roost_tunnel_break_off(tunnel);
        }
    }
}

// To the client

// False if the client's socket is full. The same bytes must then be written again (SSL_write(3)).
static int encrypt(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    roost_tunnel_forget_errors();
    int result = SSL_write(tunnel->ssl, bytes, (int)count);
    if (result > 0) return 1;
    int error = SSL_get_error(tunnel->ssl, result);
    if (error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ) roost_tunnel_break_off(tunnel);
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
    roost_tunnel_forget_errors();
    int result = SSL_shutdown(tunnel->ssl);
    if (result < 0 && SSL_get_error(tunnel->ssl, result) == SSL_ERROR_WANT_WRITE) return;
    shutdown(tunnel->client.fd, SHUT_WR);
    tunnel->client_was_told = 1;
}

void roost_tunnel_pass_out(struct roost_tunnel *tunnel) {
    unsigned char *scratch = tunnel->tunnels->scratch;
    for (;;) {
        struct rest *rest = &tunnel->to_client;
        if (!flush_to_client(tunnel)) return;
        if (tunnel->plain_ended) return say_goodbye(tunnel);
        ssize_t count = recv(tunnel->plain.fd, scratch, RECORD, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) {
            tunnel->plain_ended = 1;
            roost_tunnel_begin_ending(tunnel);
            continue;
        }
        if (!encrypt(tunnel, scratch, (size_t)count)) {
            if (!tunnel->is_broken && !keep(rest, scratch, (size_t)count)) roost_tunnel_break_off(tunnel);
            return;
        }
        if (count < RECORD) return;
    }
}

void roost_tunnel_discard_output(struct roost_tunnel *tunnel) {
    ssize_t count;
    do count = recv(tunnel->plain.fd, tunnel->tunnels->scratch, RECORD, MSG_DONTWAIT);
    while (count > 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    tunnel->plain_ended = 1;
    roost_tunnel_begin_ending(tunnel);
}

// Past the plain end

static int is_of_use(const struct roost_tunnel *tunnel) {
    return !tunnel->is_over && !tunnel->is_broken && !tunnel->plain_ended && !tunnel->handshake_waits_for;
}

long roost_tunnel_send(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    if (!is_of_use(tunnel)) return -1;
    if (tunnel->is_behind && !tunnel->to_client.bytes) {
        roost_tunnel_pass_out(tunnel);
        tunnel->is_behind = tunnel->to_client.bytes != NULL;
    }
    size_t taken = 0;
    while (taken < count && is_of_use(tunnel) && !tunnel->to_client.bytes) {
        size_t next = least(count - taken, RECORD);
        if (!encrypt(tunnel, bytes + taken, next) && !tunnel->is_broken && !keep(&tunnel->to_client, bytes + taken, next))
            roost_tunnel_break_off(tunnel);
        taken += next;
    }
    if (taken == count && !tunnel->to_client.bytes && !tunnel->is_broken) return (long)taken;
    roost_tunnel_go_on(tunnel);
    return is_of_use(tunnel) ? (long)taken : -1;
}

int roost_tunnel_keep(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count) {
    if (!is_of_use(tunnel)) return -1;
    int is_kept = keep(&tunnel->to_client, bytes, count);
    if (!is_kept) roost_tunnel_break_off(tunnel);
    roost_tunnel_go_on(tunnel);
    return is_kept ? 0 : -1;
}
