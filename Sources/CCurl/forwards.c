// POSTs whose answers come in pieces, many at once on one thread.

#include "forwards.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

struct forward {
    uint64_t id;
    CURL *curl;
    struct curl_slist *headers;
    struct roost_forwards *set;
    struct forward *next, *previous;
    int is_headed;
};

struct roost_forwards {
    CURLM *multi;
    struct roost_forward_calls calls;
    struct forward *first;
};

static long status_of(const struct forward *forward) {
    long status = 0;
    curl_easy_getinfo(forward->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static const char *type_of(const struct forward *forward) {
    const char *type = NULL;
    curl_easy_getinfo(forward->curl, CURLINFO_CONTENT_TYPE, (char **)&type);
    return type ? type : "";
}

static size_t take_header(char *data, size_t one, size_t count, void *user) {
    struct forward *forward = user;
    size_t length = one * count;
    // The empty line after the head of an answer; a 1xx is not an answer yet.
    if (length <= 2 && !forward->is_headed && status_of(forward) >= 200) {
        forward->is_headed = 1;
        forward->set->calls.head(forward->set->calls.context, forward->id, status_of(forward));
    }
    (void)data;
    return length;
}

static size_t take_piece(char *data, size_t one, size_t count, void *user) {
    struct forward *forward = user;
    size_t length = one * count;
    int is_taken = forward->set->calls.piece(forward->set->calls.context, forward->id, status_of(forward), type_of(forward),
                                            (const unsigned char *)data, length);
    return is_taken ? length : CURL_WRITEFUNC_PAUSE;
}

struct roost_forwards *roost_forwards_create(struct roost_forward_calls calls) {
    struct roost_forwards *set = calloc(1, sizeof *set);
    if (!set) return NULL;
    set->multi = curl_multi_init();
    set->calls = calls;
    if (set->multi) return set;
    free(set);
    return NULL;
}

static void end(struct forward *forward) {
    struct roost_forwards *set = forward->set;
    if (forward->next) forward->next->previous = forward->previous;
    if (forward->previous) forward->previous->next = forward->next;
    if (set->first == forward) set->first = forward->next;
    curl_multi_remove_handle(set->multi, forward->curl);
    curl_easy_cleanup(forward->curl);
    curl_slist_free_all(forward->headers);
    free(forward);
}

void roost_forwards_destroy(struct roost_forwards *set) {
    if (!set) return;
    while (set->first) end(set->first);
    curl_multi_cleanup(set->multi);
    free(set);
}

int roost_forwards_begin(struct roost_forwards *set, uint64_t id, const char *url, const char *const *headers, size_t header_count,
                         const unsigned char *body, size_t length, long connect_ms, long silence_s) {
    struct forward *forward = calloc(1, sizeof *forward);
    if (!forward) return 0;
    forward->id = id;
    forward->set = set;
    forward->curl = curl_easy_init();
    if (!forward->curl) {
        free(forward);
        return 0;
    }
    CURL *curl = forward->curl;
    forward->headers = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < header_count; i++) forward->headers = curl_slist_append(forward->headers, headers[i]);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "roost");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, forward->headers);
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, (const char *)body);
    // libcurl resends a request if its reused connection ends without an answer, and no message may be sent twice.
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 10L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 5L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, silence_s);
    // Otherwise half of a transfer's memory would be buffers for large answers.
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 4096L);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, forward);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_piece);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, forward);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, forward);
    if (curl_multi_add_handle(set->multi, curl) != CURLM_OK) {
        curl_easy_cleanup(curl);
        curl_slist_free_all(forward->headers);
        free(forward);
        return 0;
    }
    forward->next = set->first;
    if (set->first) set->first->previous = forward;
    set->first = forward;
    return 1;
}

static struct forward *find(struct roost_forwards *set, uint64_t id) {
    for (struct forward *forward = set->first; forward; forward = forward->next)
        if (forward->id == id) return forward;
    return NULL;
}

void roost_forwards_resume(struct roost_forwards *set, uint64_t id) {
    struct forward *forward = find(set, id);
    if (forward) curl_easy_pause(forward->curl, CURLPAUSE_CONT);
}

void roost_forwards_cancel(struct roost_forwards *set, uint64_t id) {
    struct forward *forward = find(set, id);
    if (forward) end(forward);
}

void roost_forwards_wait(struct roost_forwards *set, int descriptor, int timeout_ms) {
    // A request that was just started is due at once.
    struct curl_waitfd news = {.fd = descriptor, .events = CURL_WAIT_POLLIN};
    curl_multi_poll(set->multi, &news, 1, timeout_ms, NULL);
    int running = 0, left = 0;
    curl_multi_perform(set->multi, &running);
    CURLMsg *message;
    while ((message = curl_multi_info_read(set->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        struct forward *forward = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&forward);
        curl_off_t connect_us = 0;
        curl_easy_getinfo(forward->curl, CURLINFO_CONNECT_TIME_T, &connect_us);
        long status = connect_us > 0 ? status_of(forward) : -1;
        set->calls.done(set->calls.context, forward->id, status, type_of(forward),
                        code == CURLE_OK ? NULL : curl_easy_strerror(code));
        end(forward);
    }
}
