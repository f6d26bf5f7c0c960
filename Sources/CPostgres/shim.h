#include <libpq-fe.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

/* Enumerators that are combined with |, which Swift does not import as numbers. */
static const int roost_eventfd_flags = EFD_NONBLOCK | EFD_CLOEXEC;

/* prctl is variadic, which does not import. */
static inline void roost_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
