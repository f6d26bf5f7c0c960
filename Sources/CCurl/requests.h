// Declarations shared by transfer.c and post.c.

#ifndef ROOST_REQUESTS_H
#define ROOST_REQUESTS_H

#include "CCurl.h"

#include <curl/curl.h>

struct roost_requests {
    CURL *curl;
};

#endif
