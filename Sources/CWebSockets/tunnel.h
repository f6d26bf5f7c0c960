// The inside of a tunnel, shared by tunnel.c (its events, and its owner's requests) and passing.c (the bytes).
#include "tls.h"

enum {
    // The largest payload of a TLS record (RFC 8446, section 5.1).
    RECORD = 16384,
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
    struct rest to_client, to_plain;
    struct side client, plain;
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

// Starts the limited time that the tunnel has left.
void roost_tunnel_begin_ending(struct roost_tunnel *tunnel);
// Marks TLS as unusable.
void roost_tunnel_break_off(struct roost_tunnel *tunnel);
// Notes that the loop has closed its end.
void roost_tunnel_lose_plain(struct roost_tunnel *tunnel);
// Passes the client's bytes on until none are left or the loop's end is full; while that is full, nothing more is read.
void roost_tunnel_pass_in(struct roost_tunnel *tunnel);
// Passes the loop's bytes on until none are left or the client's socket is full.
void roost_tunnel_pass_out(struct roost_tunnel *tunnel);
// Drops what the loop still sends on a broken connection.
void roost_tunnel_discard_output(struct roost_tunnel *tunnel);
// Waits for the events that both sides need, or ends the tunnel.
void roost_tunnel_go_on(struct roost_tunnel *tunnel);
void roost_tunnel_drop_rests(struct roost_tunnel *tunnel);
void roost_tunnel_forget_errors(void);
