// A request whose whole body is at hand, for a thread that waits for the answer.

#include "requests.h"

#include <curl/curl.h>
#include <stdio.h>

static size_t drop(char *data, size_t one, size_t count, void *user) {
    (void)data;
    (void)user;
    return one * count;
}

long roost_post(struct roost_requests *requests, const char *url, const char *const *headers, size_t header_count,
                const unsigned char *body, size_t length, long timeout_ms, char *problem) {
    CURL *curl = requests->curl;
    // Connections are kept.
    curl_easy_reset(curl);
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < header_count; i++) list = curl_slist_append(list, headers[i]);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "roost");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);

    long status = 0;
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, NULL);
    curl_slist_free_all(list);
    if (code == CURLE_OK) return status;
    snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "%s", curl_easy_strerror(code));
    return -1;
}
