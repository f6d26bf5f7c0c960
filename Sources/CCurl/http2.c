#include "http2_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct note *roost_http2_new_note(enum roost_http2_kind kind, uint64_t connection, uint64_t request) {
    struct note *note = calloc(1, sizeof *note);
    if (!note) abort(); // a lost note would be a request that never ends
    note->face.kind = kind;
    note->face.connection = connection;
    note->face.request = request;
    note->face.text = note->text;
    note->face.date = note->date;
    note->face.retry_after = note->retry_after;
    note->face.body = note->body;
    return note;
}

void roost_http2_add_note(roost_http2 *set, struct note *note) {
    if (set->last) set->last->next = note;
    else set->first = note;
    set->last = note;
}

const struct roost_http2_note *roost_http2_next(roost_http2 *set) {
    free(set->taken);
    set->taken = set->first;
    if (!set->taken) return NULL;
    set->first = set->taken->next;
    if (!set->first) set->last = NULL;
    return &set->taken->face;
}

void roost_http2_begin_thread(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}

roost_http2 *roost_http2_create(void) {
    roost_http2 *set = calloc(1, sizeof *set);
    if (!set) return NULL;
    set->multi = curl_multi_init();
    if (!set->multi) {
        free(set);
        return NULL;
    }
    return set;
}

void roost_http2_destroy(roost_http2 *set) {
    while (set->connections) {
        struct connection *connection = set->connections;
        set->connections = connection->next;
        roost_http2_end(connection, NULL);
        roost_http2_free(connection);
    }
    while (roost_http2_next(set)) {}
    curl_multi_cleanup(set->multi);
    free(set->waits);
    free(set);
}

void roost_http2_wake(roost_http2 *set) { curl_multi_wakeup(set->multi); }

struct connection *roost_http2_find(roost_http2 *set, uint64_t id) {
    for (struct connection *each = set->connections; each; each = each->next)
        if (each->id == id) return each;
    return NULL;
}

static void sweep(roost_http2 *set) {
    struct connection **link = &set->connections;
    while (*link) {
        struct connection *connection = *link;
        if (connection->state == OVER) {
            *link = connection->next;
            roost_http2_free(connection);
        } else {
            link = &connection->next;
        }
    }
}

// Returns the number of places filled in the array; `timeout_ms` becomes 0 if something can be done at once.
static unsigned int prepare(roost_http2 *set, int *timeout_ms) {
    unsigned int count = 0;
    for (struct connection *each = set->connections; each; each = each->next) {
        if (each->state == OPEN) roost_http2_flush(each);
        if (each->state != OPEN) continue;
        if (each->has_more) *timeout_ms = 0;
        if (count == set->waits_size) {
            size_t size = count ? 2 * (size_t)count : 8;
            struct curl_waitfd *waits = realloc(set->waits, size * sizeof *waits);
            if (!waits) break;
            set->waits = waits;
            set->waits_size = size;
        }
        short events = CURL_WAIT_POLLIN | (each->out_length ? CURL_WAIT_POLLOUT : 0);
        set->waits[count++] = (struct curl_waitfd){each->socket, events, 0};
    }
    return count;
}

void roost_http2_wait(roost_http2 *set, int timeout_ms) {
    sweep(set);
    unsigned int count = prepare(set, &timeout_ms);
    if (set->first) timeout_ms = 0;
    curl_multi_poll(set->multi, set->waits, count, timeout_ms, NULL);

    int running = 0, left = 0;
    curl_multi_perform(set->multi, &running);
    for (CURLMsg *message; (message = curl_multi_info_read(set->multi, &left));) {
        if (message->msg != CURLMSG_DONE) continue;
        struct connection *connection = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&connection);
        if (connection && connection->state == CONNECTING) roost_http2_connected(connection, message->data.result);
    }

    for (struct connection *each = set->connections; each; each = each->next) {
        if (each->state != OPEN) continue;
        int is_ready = each->has_more;
        for (unsigned int i = 0; i < count && !is_ready; i++)
            is_ready = set->waits[i].fd == each->socket && set->waits[i].revents;
        if (is_ready) roost_http2_read(each);
        if (each->state == OPEN) roost_http2_flush(each);
    }
}
