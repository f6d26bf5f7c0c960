#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>

/* Glibc's Swift module leaves epoll out, and struct epoll_event is packed, with a union in it: what Swift sees are
   numbers. */
enum { roost_epoll_batch = 512 };
enum { roost_epoll_in = EPOLLIN, roost_epoll_out = EPOLLOUT, roost_epoll_ended = EPOLLHUP | EPOLLERR };

static inline int roost_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int roost_epoll_add(int epoll, int fd, uint32_t slot, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = slot};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static inline int roost_epoll_change(int epoll, int fd, uint32_t slot, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = slot};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

static inline int roost_epoll_remove(int epoll, int fd) {
    struct epoll_event event = {0};
    return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event);
}

/* Fills `ready`, which has room for a batch, with events << 32 | slot; -1 with errno as epoll_wait has it. */
static inline int roost_epoll_wait(int epoll, uint64_t *ready, uint64_t nanoseconds) {
    struct epoll_event events[roost_epoll_batch];
    struct timespec wait = {.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)};
    int count = epoll_pwait2(epoll, events, roost_epoll_batch, &wait, NULL);
    for (int i = 0; i < count; i++) ready[i] = (uint64_t)events[i].events << 32 | events[i].data.u32;
    return count;
}

/* Timers of the calling thread fire when they are due, and not up to 50 µs later. */
static inline void roost_exact_timers(void) { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

/* A GNU extension: declared only for those who define _GNU_SOURCE before any header. */
void *memmem(const void *haystack, size_t length, const void *needle, size_t needle_length);
int epoll_pwait2(int epoll, struct epoll_event *events, int room, const struct timespec *wait, const __sigset_t *mask);

/* What reading and writing through TLS answer where there are no bytes. */
enum { roost_tls_ended = 0, roost_tls_wants_read = -1, roost_tls_wants_write = -2, roost_tls_failed = -3 };

/* NULL when the file of authorities cannot be used; a NULL file means the system's. */
static inline SSL_CTX *roost_tls_context(int verifies, const char *authorities) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) return NULL;
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    if (!verifies) return context;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    int known = authorities ? SSL_CTX_load_verify_locations(context, authorities, NULL)
                            : SSL_CTX_set_default_verify_paths(context);
    if (known == 1) return context;
    SSL_CTX_free(context);
    return NULL;
}

static inline SSL *roost_tls_open(SSL_CTX *context, int fd, const char *host, int is_address) {
    SSL *session = SSL_new(context);
    if (!session) return NULL;
    SSL_set_fd(session, fd);
    if (is_address) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host);
    } else {
        SSL_set_tlsext_host_name(session, host);
        SSL_set1_host(session, host);
    }
    SSL_set_connect_state(session);
    return session;
}

static inline long roost_tls_outcome(SSL *session, int result) {
    if (result > 0) return result;
    switch (SSL_get_error(session, result)) {
    case SSL_ERROR_WANT_READ: return roost_tls_wants_read;
    case SSL_ERROR_WANT_WRITE: return roost_tls_wants_write;
    case SSL_ERROR_ZERO_RETURN: return roost_tls_ended;
    default: return roost_tls_failed;
    }
}

static inline long roost_tls_handshake(SSL *session) {
    ERR_clear_error();
    return roost_tls_outcome(session, SSL_do_handshake(session));
}

static inline long roost_tls_read(SSL *session, void *bytes, size_t room) {
    ERR_clear_error();
    return roost_tls_outcome(session, SSL_read(session, bytes, (int)room));
}

static inline long roost_tls_write(SSL *session, const void *bytes, size_t count) {
    ERR_clear_error();
    return roost_tls_outcome(session, SSL_write(session, bytes, (int)count));
}

/* Why the last call failed; fills `text`. */
static inline void roost_tls_reason(SSL *session, char *text, size_t room) {
    long verdict = session ? SSL_get_verify_result(session) : X509_V_OK;
    if (verdict != X509_V_OK) {
        const char *reason = X509_verify_cert_error_string(verdict);
        size_t at = 0;
        for (; reason[at] && at + 1 < room; at++) text[at] = reason[at];
        text[at] = 0;
        return;
    }
    ERR_error_string_n(ERR_peek_last_error(), text, room);
}
