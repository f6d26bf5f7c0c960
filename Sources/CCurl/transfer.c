// HTTP requests of the command line, with bodies and answers of any length. They block the calling thread.

#include "requests.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct transfer {
    const struct roost_transfer *asked;
    CURL *curl;
};

static size_t give(char *buffer, size_t one, size_t count, void *user) {
    const struct transfer *transfer = user;
    long length = transfer->asked->read(transfer->asked->context, (unsigned char *)buffer, one * count);
    return length < 0 ? CURL_READFUNC_ABORT : (size_t)length;
}

static size_t take(char *data, size_t one, size_t count, void *user) {
    const struct transfer *transfer = user;
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    return transfer->asked->write(transfer->asked->context, status, (const unsigned char *)data, one * count) ? 0 : one * count;
}

struct roost_requests *roost_requests_create(void) {
    struct roost_requests *requests = malloc(sizeof *requests);
    if (!requests) return NULL;
    requests->curl = curl_easy_init();
    if (requests->curl) return requests;
    free(requests);
    return NULL;
}

void roost_requests_destroy(struct roost_requests *requests) {
    if (!requests) return;
    curl_easy_cleanup(requests->curl);
    free(requests);
}

const char *roost_answer_header(struct roost_requests *requests, const char *name) {
    struct curl_header *header = NULL;
    return curl_easy_header(requests->curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : NULL;
}

long roost_transfer(struct roost_requests *requests, const struct roost_transfer *asked, char *problem) {
    CURL *curl = requests->curl;
    struct transfer transfer = {asked, curl};
    // Connections are kept.
    curl_easy_reset(curl);
    // The body comes in an unknown number of pieces; they are sent without first asking the server for permission.
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    if (asked->read) headers = curl_slist_append(headers, "Transfer-Encoding: chunked");
    for (size_t i = 0; i < asked->header_count; i++) headers = curl_slist_append(headers, asked->headers[i]);
    curl_easy_setopt(curl, CURLOPT_URL, asked->url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "roost");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (asked->read) {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, give);
        curl_easy_setopt(curl, CURLOPT_READDATA, &transfer);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, asked->method);
    if (strcmp(asked->method, "GET") != 0) curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);

    long status = 0;
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    // An answer that arrives before everything was sent still counts.
    if (code == CURLE_OK || status >= 400) return status;
    snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "%s", curl_easy_strerror(code));
    return -1;
}
