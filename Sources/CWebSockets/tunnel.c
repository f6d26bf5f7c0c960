#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tunnel.h"

enum {
    // A handshake takes two or three steps.
    HANDSHAKE_STEPS_OF_A_TURN = 8,
    // Seconds for the last output after the loop has ended its side: without an acknowledgement, and in total.
    STILL_SECONDS = 5,
    ENDING_SECONDS = 60,
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

static void end(struct roost_tunnel *tunnel) {
    if (tunnel->is_over) return;
    tunnel->is_over = 1;
    if (tunnel->next) tunnel->next->previous = tunnel->previous;
    if (tunnel->previous) tunnel->previous->next = tunnel->next;
    else if (tunnel->tunnels->ending == tunnel) tunnel->tunnels->ending = tunnel->next;
    SSL_free(tunnel->ssl);
    roost_tunnel_drop_rests(tunnel);
    close_side(&tunnel->client);
    close_side(&tunnel->plain);
}

// Events

static void shake_hands(struct roost_tunnel *tunnel) {
    if (tunnel->tunnels->handshake_steps == 0) return;
    tunnel->tunnels->handshake_steps--;
    roost_tunnel_forget_errors();
    int result = SSL_do_handshake(tunnel->ssl);
    if (result == 1) {
        tunnel->handshake_waits_for = 0;
        return roost_tunnel_pass_in(tunnel);
    }
    switch (SSL_get_error(tunnel->ssl, result)) {
    case SSL_ERROR_WANT_READ: tunnel->handshake_waits_for = UV_READABLE; break;
    case SSL_ERROR_WANT_WRITE: tunnel->handshake_waits_for = UV_WRITABLE; break;
    default:
        tunnel->handshake_waits_for = 0;
        roost_tunnel_break_off(tunnel);
    }
}

// Nonzero if libuv fails.
static int wait_for(struct side *side, int events, uv_poll_cb ready) {
    if (events == side->events) return 0;
    side->events = events;
    return events ? uv_poll_start(&side->poll, events, ready) : uv_poll_stop(&side->poll);
}

static int if_true(int condition, int event) { return condition ? event : 0; }

void roost_tunnel_go_on(struct roost_tunnel *tunnel) {
    if (tunnel->is_over) return;
    if (tunnel->client_ended && tunnel->plain_ended && tunnel->client_was_told) return end(tunnel);
    int client, plain;
    if (tunnel->handshake_waits_for) {
        client = tunnel->handshake_waits_for;
        plain = UV_READABLE;
    } else {
        int is_full = tunnel->to_client.bytes || tunnel->waiting >= 0 || tunnel->read_waits_for_write
            || (tunnel->plain_ended && !tunnel->client_was_told);
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
        roost_tunnel_break_off(tunnel);
    } else if (tunnel->handshake_waits_for) {
        shake_hands(tunnel);
    } else {
        if (events & UV_WRITABLE && !tunnel->is_broken) roost_tunnel_pass_out(tunnel);
        if (tunnel->waiting >= 0 && !tunnel->to_client.bytes && !tunnel->is_broken) give_room(tunnel);
        if (events & UV_READABLE || tunnel->read_waits_for_write) roost_tunnel_pass_in(tunnel);
    }
    roost_tunnel_go_on(tunnel);
}

static void plain_is_ready(uv_poll_t *handle, int status, int events) {
    struct roost_tunnel *tunnel = handle->data;
    tunnel->tunnels->owner.begins(tunnel->tunnels->owner.user);
    // Before the handshake is complete, the loop's end can only close.
    if (tunnel->handshake_waits_for) return end(tunnel);
    if (status < 0) {
        tunnel->plain.events = 0;
        roost_tunnel_lose_plain(tunnel);
    }
    if (events & UV_DISCONNECT || status < 0) roost_tunnel_begin_ending(tunnel);
    if (events & UV_WRITABLE && !tunnel->is_broken) roost_tunnel_pass_in(tunnel);
    if (tunnel->is_broken) roost_tunnel_discard_output(tunnel);
    else if (events & UV_READABLE || status < 0) roost_tunnel_pass_out(tunnel);
    roost_tunnel_go_on(tunnel);
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
    roost_tunnel_go_on(tunnel);
    *plain = pair[0];
    return tunnel;
}

int roost_tunnel_client(const struct roost_tunnel *tunnel) { return tunnel->client.fd; }

void roost_tunnel_put_behind(struct roost_tunnel *tunnel) { tunnel->is_behind = 1; }

void roost_tunnel_await_room(struct roost_tunnel *tunnel, int waiting) {
    tunnel->waiting = waiting;
    roost_tunnel_go_on(tunnel);
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
