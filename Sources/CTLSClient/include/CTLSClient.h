// TLS of a client on a socket that its owner connected and polls, by OpenSSL: the little that Swift cannot reach by itself,
// as much of OpenSSL is macros.
//
// Invariants
//   - One thread uses a client; none of the functions waits. The socket stays its owner's, who closes it after roost_tls_free.
//   - The server's certificate and its name are verified unless the owner says otherwise; TLS 1.2 is the least.
//   - A peer that is gone raises no signal.
//   - Whole records can wait inside OpenSSL, where poll does not see them: read until ROOST_TLS_WANTS_READ, or ask
//     roost_tls_has_pending.
//   - `problem` is a few words, and holds nothing of what was sent.

#ifndef ROOST_CTLSCLIENT_H
#define ROOST_CTLSCLIENT_H

#include <stdbool.h>
#include <stddef.h>

#define ROOST_TLS_PROBLEM_SIZE 256

typedef struct roost_tls roost_tls;

// What came of a step where it moved no bytes.
enum roost_tls_outcome {
    ROOST_TLS_DONE = 0,
    ROOST_TLS_WANTS_READ = -1,
    ROOST_TLS_WANTS_WRITE = -2,
    // The peer ended the connection, in order or not.
    ROOST_TLS_CLOSED = -3,
    // `problem` says why.
    ROOST_TLS_FAILED = -4,
};

// NULL with `problem` where the file of authorities cannot be read.
//
// `host` is what the certificate has to name: a host's name or an IP address. `authorities` is a PEM file of certificate
// authorities, NULL for the machine's own. With `verifies` false every certificate will do.
roost_tls *roost_tls_create(int descriptor, const char *host, const char *authorities, bool verifies, char *problem);
void roost_tls_free(roost_tls *tls);

// An outcome; ROOST_TLS_DONE once both sides agree.
int roost_tls_handshake(roost_tls *tls, char *problem);

// The number of bytes moved, which is greater than zero, or an outcome.
long roost_tls_read(roost_tls *tls, void *bytes, size_t capacity, char *problem);
long roost_tls_write(roost_tls *tls, const void *bytes, size_t count, char *problem);

// Whether something was received that has not been read.
bool roost_tls_has_pending(const roost_tls *tls);

#endif
