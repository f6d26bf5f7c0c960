#include "CTLSClient.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct roost_tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    SSL *ssl;
    int descriptor;
};

// OpenSSL's own socket BIO writes by write(2), which raises SIGPIPE where the peer is gone.
static int send_bytes(BIO *bio, const char *bytes, int count) {
    roost_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t sent = send(tls->descriptor, bytes, (size_t)count, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return (int)sent;
}

static int receive_bytes(BIO *bio, char *bytes, int capacity) {
    roost_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t received = recv(tls->descriptor, bytes, (size_t)capacity, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    return (int)received;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void describe(const SSL *ssl, const char *what, char *problem) {
    // Where nothing is verified, the verdict is no reason.
    long verdict = ssl && SSL_get_verify_mode(ssl) ? SSL_get_verify_result(ssl) : X509_V_OK;
    unsigned long error = ERR_peek_last_error();
    const char *reason = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
        : error                               ? ERR_reason_error_string(error)
                                              : NULL;
    snprintf(problem, ROOST_TLS_PROBLEM_SIZE, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
    ERR_clear_error();
}

void roost_tls_free(roost_tls *tls) {
    if (!tls) return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

static bool set_host(SSL *ssl, const char *host) {
    unsigned char address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(parameters, host);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, host) && SSL_set1_host(ssl, host);
}

static BIO *socket_of(roost_tls *tls) {
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (!tls->method || !BIO_meth_set_write(tls->method, send_bytes) || !BIO_meth_set_read(tls->method, receive_bytes)
        || !BIO_meth_set_ctrl(tls->method, control))
        return NULL;
    BIO *bio = BIO_new(tls->method);
    if (!bio) return NULL;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    return bio;
}

roost_tls *roost_tls_create(int descriptor, const char *host, const char *authorities, bool verifies, char *problem) {
    ERR_clear_error();
    roost_tls *tls = calloc(1, sizeof *tls);
    if (!tls) {
        snprintf(problem, ROOST_TLS_PROBLEM_SIZE, "there is no memory left");
        return NULL;
    }
    tls->descriptor = descriptor;
    tls->context = SSL_CTX_new(TLS_client_method());
    bool is_made = tls->context && SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    if (is_made) SSL_CTX_set_verify(tls->context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (is_made && verifies) {
        is_made = authorities ? SSL_CTX_load_verify_file(tls->context, authorities)
                              : SSL_CTX_set_default_verify_paths(tls->context);
        if (!is_made) describe(NULL, "the certificate authorities cannot be read", problem);
    } else if (!is_made) {
        describe(NULL, "OpenSSL makes no client", problem);
    }
    BIO *bio = NULL;
    if (is_made) {
        tls->ssl = SSL_new(tls->context);
        bio = socket_of(tls);
        is_made = tls->ssl && bio && set_host(tls->ssl, host);
        if (!is_made) describe(NULL, "OpenSSL makes no client", problem);
    }
    if (!is_made) {
        BIO_free(bio);
        roost_tls_free(tls);
        return NULL;
    }
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_mode(tls->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_connect_state(tls->ssl);
    return tls;
}

// `result` is of the call that was made just before, with `number` as errno was after it.
static int outcome(roost_tls *tls, int result, int number, const char *what, char *problem) {
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ: return ROOST_TLS_WANTS_READ;
    case SSL_ERROR_WANT_WRITE: return ROOST_TLS_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN: return ROOST_TLS_CLOSED;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        if (number == 0 || number == ECONNRESET || number == EPIPE) return ROOST_TLS_CLOSED;
        snprintf(problem, ROOST_TLS_PROBLEM_SIZE, "%s: %s", what, strerror(number));
        return ROOST_TLS_FAILED;
    default:
        // The end of a connection without the end of TLS, which is no attack here: replies say their lengths.
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
            ERR_clear_error();
            return ROOST_TLS_CLOSED;
        }
        describe(tls->ssl, what, problem);
        return ROOST_TLS_FAILED;
    }
}

int roost_tls_handshake(roost_tls *tls, char *problem) {
    ERR_clear_error();
    errno = 0;
    int result = SSL_do_handshake(tls->ssl);
    return result == 1 ? ROOST_TLS_DONE : outcome(tls, result, errno, "TLS fails", problem);
}

static int capped(size_t count) { return count > INT_MAX ? INT_MAX : (int)count; }

long roost_tls_read(roost_tls *tls, void *bytes, size_t capacity, char *problem) {
    ERR_clear_error();
    errno = 0;
    int result = SSL_read(tls->ssl, bytes, capped(capacity));
    return result > 0 ? result : outcome(tls, result, errno, "TLS fails", problem);
}

long roost_tls_write(roost_tls *tls, const void *bytes, size_t count, char *problem) {
    ERR_clear_error();
    errno = 0;
    int result = SSL_write(tls->ssl, bytes, capped(count));
    return result > 0 ? result : outcome(tls, result, errno, "TLS fails", problem);
}

bool roost_tls_has_pending(const roost_tls *tls) { return SSL_has_pending(tls->ssl); }
