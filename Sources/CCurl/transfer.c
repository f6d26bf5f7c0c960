// One HTTP request of the command line, whose body and whose answer go on for as long as they like. It waits on the calling thread.

#include "CCurl.h"

#include <curl/curl.h>
#include <stdio.h>

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

long roost_transfer(const struct roost_transfer *asked, char *problem) {
    struct transfer transfer = {asked, curl_easy_init()};
    CURL *curl = transfer.curl;
    if (!curl) {
        snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "libcurl cannot start");
        return -1;
    }
    // What is read comes in pieces of unknown number; nobody is asked first whether they are wanted.
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
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);

    long status = 0;
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    // An answer that came before all was sent is an answer.
    if (code == CURLE_OK || status >= 400) return status;
    snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "%s", curl_easy_strerror(code));
    return -1;
}
