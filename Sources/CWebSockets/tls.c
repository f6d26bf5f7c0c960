#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Mozilla's intermediate configuration (Server Side TLS, 5.7) without the finite-field Diffie-Hellman suites: all
// suites have forward secrecy and authenticated encryption.
static const char suites_of_tls_13[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
static const char suites_of_tls_12[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char groups[] = "X25519:P-256:P-384";

struct roost_certificate {
    X509 *leaf;
    STACK_OF(X509) *chain;
    EVP_PKEY *key;
};

void roost_certificate_free(struct roost_certificate *certificate) {
    if (!certificate) return;
    X509_free(certificate->leaf);
    sk_X509_pop_free(certificate->chain, X509_free);
    EVP_PKEY_free(certificate->key);
    free(certificate);
}

// A complete file ends where no further certificate begins; any other error means a truncated or garbled certificate.
static int ends_well(void) {
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static enum roost_certificate_problem read_chain(struct roost_certificate *certificate, const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) return ROOST_CERTIFICATE_UNREADABLE;
    certificate->leaf = PEM_read_X509(file, NULL, NULL, NULL);
    if (!certificate->leaf) {
        fclose(file);
        return ROOST_CERTIFICATE_MALFORMED;
    }
    X509 *next;
    while ((next = PEM_read_X509(file, NULL, NULL, NULL))) {
        if (sk_X509_push(certificate->chain, next)) continue;
        X509_free(next);
        fclose(file);
        return ROOST_CERTIFICATE_NO_MEMORY;
    }
    fclose(file);
    return ends_well() ? ROOST_CERTIFICATE_FINE : ROOST_CERTIFICATE_MALFORMED;
}

// Without this, OpenSSL would prompt on the terminal.
static int no_password(char *buffer, int size, int writing, void *was_asked) {
    (void)buffer, (void)size, (void)writing;
    *(int *)was_asked = 1;
    return -1;
}

static enum roost_certificate_problem read_key(struct roost_certificate *certificate, const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) return ROOST_KEY_UNREADABLE;
    int was_asked = 0;
    certificate->key = PEM_read_PrivateKey(file, NULL, no_password, &was_asked);
    fclose(file);
    if (certificate->key) return ROOST_CERTIFICATE_FINE;
    return was_asked ? ROOST_KEY_ENCRYPTED : ROOST_KEY_MALFORMED;
}

// Whether OpenSSL would present the certificate, which also depends on the system's security level.
static int is_presentable(const struct roost_certificate *certificate) {
    SSL_CTX *trial = SSL_CTX_new(TLS_server_method());
    if (!trial) return 0;
    int is = SSL_CTX_use_cert_and_key(trial, certificate->leaf, certificate->key, certificate->chain, 1) == 1;
    SSL_CTX_free(trial);
    return is;
}

static enum roost_certificate_problem read_pair(struct roost_certificate *certificate, const char *path, const char *key) {
    enum roost_certificate_problem problem = read_chain(certificate, path);
    if (problem == ROOST_CERTIFICATE_FINE) problem = read_key(certificate, key);
    if (problem != ROOST_CERTIFICATE_FINE) return problem;
    if (X509_check_private_key(certificate->leaf, certificate->key) != 1) return ROOST_KEY_OF_ANOTHER;
    return is_presentable(certificate) ? ROOST_CERTIFICATE_FINE : ROOST_CERTIFICATE_WEAK;
}

struct roost_certificate *roost_certificate_read(const char *path, const char *key,
                                                 enum roost_certificate_problem *problem) {
    ERR_clear_error();
    *problem = ROOST_CERTIFICATE_NO_MEMORY;
    struct roost_certificate *certificate = calloc(1, sizeof *certificate);
    if (certificate) certificate->chain = sk_X509_new_null();
    if (certificate && certificate->chain) *problem = read_pair(certificate, path, key);
    int error = errno;
    if (*problem != ROOST_CERTIFICATE_FINE) {
        roost_certificate_free(certificate);
        certificate = NULL;
    }
    ERR_clear_error();
    errno = error;
    return certificate;
}

static long long seconds(const ASN1_TIME *time) {
    struct tm parts;
    return ASN1_TIME_to_tm(time, &parts) ? (long long)timegm(&parts) : 0;
}

long long roost_certificate_begins(const struct roost_certificate *certificate) {
    return seconds(X509_get0_notBefore(certificate->leaf));
}

long long roost_certificate_ends(const struct roost_certificate *certificate) {
    return seconds(X509_get0_notAfter(certificate->leaf));
}

// Called in every handshake. The SSL_CTX itself holds no certificate, because a new one with a different type of key
// would be added beside the old one.
static int present(SSL *ssl, void *argument) {
    struct roost_certificate *const *presented = argument;
    if (!*presented) return 0;
    return SSL_use_cert_and_key(ssl, (*presented)->leaf, (*presented)->key, (*presented)->chain, 1) == 1;
}

// We do not speak HTTP/2, in which WebSockets are opened differently (RFC 8441). A client that offers protocols but not
// this one expects a different server (RFC 7301, section 3.2).
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
                           unsigned int size, void *nothing) {
    (void)ssl, (void)nothing;
    static const unsigned char ours[] = "\x08http/1.1";
    return SSL_select_next_proto((unsigned char **)chosen, length, ours, sizeof ours - 1, offered, size) == OPENSSL_NPN_NEGOTIATED
        ? SSL_TLSEXT_ERR_OK
        : SSL_TLSEXT_ERR_ALERT_FATAL;
}

SSL_CTX *roost_tls_server(struct roost_certificate *const *presented) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) return NULL;
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context, suites_of_tls_12) != 1 ||
        SSL_CTX_set_ciphersuites(context, suites_of_tls_13) != 1 || SSL_CTX_set1_groups_list(context, groups) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    // No tickets: each loop would have its own keys for them, and anyone who gets such a key can read the resumed
    // connections. An end without close_notify is accepted, because requests state their lengths. All suites are good,
    // so the client may choose what its processor does best.
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    // An idle connection keeps no buffers, which would take 34 KB. A write that is repeated after a full socket comes
    // from a copy of the bytes.
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // Return after each record without data, because a client may send them endlessly.
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    // Reads a record with one system call instead of two.
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_cert_cb(context, present, (void *)presented);
    return context;
}
