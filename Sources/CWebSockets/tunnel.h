// A tunnel from within, between tunnel.c (what happens to it, and what its owner wants) and passing.c (the bytes).
#include "tls.h"

enum {
    // The most that a TLS record holds (RFC 8446, section 5.1).
    RECORD = 16384,
};

struct side {
    uv_poll_t poll;
    int fd;
    // What libuv waits for.
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
    // libuv's handles that are not closed yet, and one for its owner.
    int references;
    // Of the owner, who waits until the client's socket takes more; negative where nobody does.
    int waiting;
    // What the handshake waits for; zero once it is made.
    int handshake_waits_for;
    // The client sends no more: its end was read, or the connection broke.
    unsigned client_ended : 1;
    unsigned plain_was_told : 1;
    // The loop has shut or closed its end, and all that it sent before was read.
    unsigned plain_is_ending : 1;
    unsigned plain_ended : 1;
    unsigned client_was_told : 1;
    // The loop has closed its end.
    unsigned plain_is_gone : 1;
    // TLS is of no use any more: the connection broke, or the client broke a rule.
    unsigned is_broken : 1;
    // To be read on when the client's socket can be written.
    unsigned read_waits_for_write : 1;
    // What the owner sends next goes behind what is in the socket pair.
    unsigned is_behind : 1;
    unsigned is_over : 1;
    // Since the loop ended its side: what the client had acknowledged when that was last looked at, and the seconds.
    long long acknowledged;
    int seconds, still_seconds;
    // Tunnels whose plain side ends.
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

// From here on the tunnel has so many seconds.
void roost_tunnel_begin_ending(struct roost_tunnel *tunnel);
// TLS is of no use any more.
void roost_tunnel_break_off(struct roost_tunnel *tunnel);
// The loop has closed its end.
void roost_tunnel_lose_plain(struct roost_tunnel *tunnel);
// Passes on what the client sent, until it has sent no more or the loop's end is full: nobody reads that meanwhile.
void roost_tunnel_pass_in(struct roost_tunnel *tunnel);
// Passes on what the loop sent, until it has sent no more or the client's socket is full.
void roost_tunnel_pass_out(struct roost_tunnel *tunnel);
// The connection is broken: what the loop still sends is for nobody.
void roost_tunnel_discard_output(struct roost_tunnel *tunnel);
// Waits for what both sides need, or ends the tunnel.
void roost_tunnel_go_on(struct roost_tunnel *tunnel);
void roost_tunnel_drop_rests(struct roost_tunnel *tunnel);
void roost_tunnel_forget_errors(void);
