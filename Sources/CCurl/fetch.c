#include "CCurl.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

struct body {
    unsigned char *buffer;
    size_t size;
    size_t length;
    int is_too_long;
};

// Returning less than was passed in makes libcurl end the transfer (CURLOPT_WRITEFUNCTION(3)).
static size_t take(char *data, size_t one, size_t count, void *user) {
    struct body *body = user;
    (void)one; // always 1
    if (count > body->size - body->length) {
        body->is_too_long = 1;
        return 0;
    }
    memcpy(body->buffer + body->length, data, count);
    body->length += count;
    return count;
}

// Describes an error without quoting host names or parts of the URL, as libcurl's own messages may.
static const char *words(CURLcode code) {
    switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL: return "only http and https are fetched";
    case CURLE_URL_MALFORMAT: return "the URL is malformed";
    case CURLE_COULDNT_RESOLVE_HOST: return "its host's name is not known";
    case CURLE_COULDNT_CONNECT: return "nothing accepts connections there";
    case CURLE_OPERATION_TIMEDOUT: return "no answer in time";
    case CURLE_TOO_MANY_REDIRECTS: return "it redirects too often";
    case CURLE_PEER_FAILED_VERIFICATION: return "its TLS certificate is not trusted";
    default: return curl_easy_strerror(code);
    }
}

long roost_fetch(const char *url, long timeout_ms, unsigned char *buffer, size_t size, char *problem) {
    struct body body = {buffer, size, 0, 0};
    CURL *curl = curl_easy_init();
    if (!curl) {
        snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "libcurl cannot start");
        return -1;
    }
    struct curl_slist *headers = curl_slist_append(NULL, "accept: application/jwk-set+json, application/json");
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 3L);
    // The .netrc of the user who starts the hub is not part of its configuration, and is not read. A proxy may be the only way out, so
    // the usual variables (https_proxy) stay in force.
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "roost");
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);

    long status = 0;
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);

    if (body.is_too_long) {
        snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "the answer is longer than %zu bytes", size);
        return -1;
    }
    if (code != CURLE_OK) {
        snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "%s", words(code));
        return -1;
    }
    if (status != 200) {
        snprintf(problem, ROOST_FETCH_PROBLEM_SIZE, "the answer's status is %ld, not 200", status);
        return -1;
    }
    return (long)body.length;
}
