// Which folder libwebsockets' event library is loaded from. Debian's libwebsockets looks for it in the one folder that it was built
// for, which a system may lack, or have with another version in it. Programs of the archive name this library before libwebsockets, so
// that libwebsockets lists, by this `lws_dir`, the folder that both of them are in (scripts/carry-libraries.sh). Roost itself lists no
// folder by it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <libwebsockets.h>
#include <limits.h>
#include <stdio.h>

int lws_dir(const char *folder, void *user, lws_dir_callback_function callback) {
    int (*list)(const char *, void *, lws_dir_callback_function) = dlsym(RTLD_NEXT, "lws_dir");
    char own[PATH_MAX];
    Dl_info here;
    if (!list) return 0;
    if (!dladdr((void *)lws_dir, &here) || snprintf(own, sizeof own, "%s", here.dli_fname) >= (int)sizeof own)
        return list(folder, user, callback);
    return list(dirname(own), user, callback);
}
