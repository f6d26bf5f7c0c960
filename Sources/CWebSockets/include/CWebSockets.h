// The parts of libwebsockets and libuv that Swift cannot reach by itself.
//
// Invariants
//   - Every function here runs on the thread of the loop that owns the context, except roost_socket_wake; nothing is
//     locked, because nothing is shared.
//   - lws_context_creation_info changes its layout with lws' build flags, so it is filled in here and never in Swift.
//   - LWS_PRE, the lwsl_ macros and variadic functions are not imported into Swift, so they are wrapped here.
//   - Buffers belong to the caller and are not kept beyond the call.

#ifndef ROOST_CWEBSOCKETS_H
#define ROOST_CWEBSOCKETS_H

#include <libwebsockets.h>
#include <uv.h>

// A context on a libuv loop of ours, with a vhost that never listens: sockets are accepted by us and adopted.
struct lws_context *roost_context_create(uv_loop_t *loop, void *user);

// A vhost whose connections all go to `callback`, which keeps 8 zeroed bytes for each.
struct lws_vhost *roost_vhost_create(struct lws_context *context, const char *name, lws_callback_function *callback);

// Passes lws' own messages to `sink` (one line each, with its level).
void roost_log_to(void (*sink)(int level, const char *line));

// Hands bytes that are framed already to lws, which buffers what the socket does not take. -1 on a dead socket.
int roost_write_framed(struct lws *wsi, const unsigned char *bytes, size_t length);

// Bytes that have arrived on a socket and were not read yet; 0 where unknown.
int roost_unread(int fd);

// Bytes that the peer of a TCP connection has acknowledged since it began; -1 for any other socket.
long long roost_bytes_acked(int fd);

// 0 if nothing listens on the port yet, else -1 with errno. Sockets that share a port (SO_REUSEPORT) would not notice another hub on it.
int roost_probe_port(const char *host, int port);
// A listening TCP socket that shares its port with the other loops' sockets; -1 with errno.
int roost_listen(const char *host, int port, int backlog);
// A listening Unix domain socket (unix.c) whose file has the permissions `mode`; -1 with errno. A stale socket file is
// replaced; EADDRINUSE if another process listens there, ENOTSOCK if the file is something else.
int roost_listen_unix(const char *path, unsigned int mode, int backlog);
// Removes that listener's file if it is still the listener's. Call it before closing the descriptor, so that it cannot
// hit another process' file.
void roost_unlink_unix(const char *path, unsigned long device, unsigned long inode);
// Identifies the file that a path names; -1 with errno.
int roost_identify(const char *path, unsigned long *device, unsigned long *inode);
// The next connection, non-blocking and without Nagle's delay; -1 with errno.
int roost_accept(int listener);

// Certificates (tls.c). One that was read never changes, so threads may share it; its owner frees it only when no loop
// presents it any more. Existing connections keep what they need of it.
struct roost_certificate;
enum roost_certificate_problem {
    ROOST_CERTIFICATE_FINE,
    ROOST_CERTIFICATE_NO_MEMORY,
    // Sets errno.
    ROOST_CERTIFICATE_UNREADABLE,
    ROOST_CERTIFICATE_MALFORMED,
    // Sets errno.
    ROOST_KEY_UNREADABLE,
    ROOST_KEY_MALFORMED,
    ROOST_KEY_ENCRYPTED,
    ROOST_KEY_OF_ANOTHER,
    // OpenSSL's security level forbids it: the key is too short, or the signature too old.
    ROOST_CERTIFICATE_WEAK,
};
// Reads a certificate with its chain, and its key, from PEM files. NULL if there is a problem.
struct roost_certificate *roost_certificate_read(const char *path, const char *key,
                                                 enum roost_certificate_problem *problem);
void roost_certificate_free(struct roost_certificate *certificate);
// Seconds since 1970 (RFC 5280, section 4.1.2.5).
long long roost_certificate_begins(const struct roost_certificate *certificate);
long long roost_certificate_ends(const struct roost_certificate *certificate);

// Connections whose TLS ends here (tunnel.c, passing.c), of one loop and on its thread. Each is a tunnel between its client's socket and a
// plain one, the end of a socket pair, which the loop reads and writes as it does a socket without TLS.
//   - Memory: OpenSSL's state, and at most one record each way that the other side did not take (2 × 16 KB), with what its owner gave to
//     keep. A side that takes nothing is not read for, so that the plain socket fills up as the client's own would.
//   - Order: what the owner sends straight to the client overtakes what was written to the plain end, unless it is put behind that.
//     Both are whole frames, and of libwebsockets' own (its pongs) none belongs at a certain place.
//   - Each side's end is passed on behind all that was sent before it: the client's as an end of input, the loop's as close_notify
//     and an end of output.
//   - The client's socket stays open until the loop has shut or closed its end, so its number stays good for the loop; afterwards for
//     60 seconds at most, and five while the client acknowledges nothing.
struct roost_tunnels;
struct roost_tunnel;
struct roost_tunnel_owner {
    // Called before anything happens to a tunnel.
    void (*begins)(void *user);
    // A client's socket takes more: `waiting` is what roost_tunnel_await_room was given.
    void (*has_room)(void *user, int waiting);
    void *user;
};
// Handshakes present what `presented` points to at the time. NULL if OpenSSL knows less than it has to, or there is no memory.
struct roost_tunnels *roost_tunnels_create(uv_loop_t *loop, struct roost_certificate *const *presented,
                                           struct roost_tunnel_owner owner);
// Takes a client's socket over; `plain` is the plain end, the caller's. The pointer is good until roost_tunnel_release, whatever becomes
// of the connection. NULL with errno, and the socket is the caller's still.
struct roost_tunnel *roost_tunnels_open(struct roost_tunnels *tunnels, int client, int *plain);
void roost_tunnel_release(struct roost_tunnel *tunnel);
// The client's socket, for questions about the client.
int roost_tunnel_client(const struct roost_tunnel *tunnel);
// Encrypts bytes straight to the client, which spares them the socket pair. Returns how many were taken, a number of whole records if
// not all, -1 if the connection is of no use any more; the plain end says so, too.
long roost_tunnel_send(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count);
// What is sent next goes behind all that was written to the plain end.
void roost_tunnel_put_behind(struct roost_tunnel *tunnel);
// The rest of what was taken in part, which nothing may come between. -1 as above.
int roost_tunnel_keep(struct roost_tunnel *tunnel, const unsigned char *bytes, size_t count);
// has_room is called, from the loop, when nothing of it is left and the client's socket takes more.
void roost_tunnel_await_room(struct roost_tunnel *tunnel, int waiting);
// Handshakes are half a millisecond of CPU each: a turn of the loop makes a few, and the others wait for the next.
void roost_tunnels_begin_turn(struct roost_tunnels *tunnels);
// To be called once a second: ends tunnels whose clients take too long with the last of it.
void roost_tunnels_tick(struct roost_tunnels *tunnels);
// Ends all tunnels whose plain end is closed, and returns how many those were.
int roost_tunnels_make_room(struct roost_tunnels *tunnels);

// An outgoing connection (client.c): a context of its own on lws' default loop, for the thread that creates it, which gets its name.
//   - All of these run on that thread, except roost_socket_wake, which any thread may call while the socket exists.
//   - Contexts are created and destroyed by one thread at a time: OpenSSL's set-up is shared by the process.
struct roost_socket;
// `tls`: whether the connection will use TLS. NULL if memory is short.
struct roost_socket *roost_socket_create(lws_callback_function *callback, void *user, int tls);
void roost_socket_destroy(struct roost_socket *socket);
// `host` is the value of the Host header. NULL if it failed at once; any reason was passed to the callback.
struct lws *roost_socket_connect(struct roost_socket *socket, const char *address, int port, const char *host,
                                 const char *path, int tls);
// Waits for an event, and handles it. Negative when the context is no longer usable.
int roost_socket_service(struct roost_socket *socket);
void roost_socket_wake(struct roost_socket *socket);
// Only in LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER, with its `in` and `len`. Nonzero if the header does not fit.
int roost_socket_header(struct lws *wsi, void *in, size_t length, const char *name_with_colon, const char *value);
// Sends one message; -1 on a dead socket. Only once in each writable callback.
int roost_socket_send(struct lws *wsi, const unsigned char *bytes, size_t length, int binary);
// Sets the close frame that is sent when the callback then returns -1.
void roost_socket_say_goodbye(struct lws *wsi, int code);

#endif
