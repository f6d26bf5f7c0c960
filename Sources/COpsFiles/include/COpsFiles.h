// The operator's page, embedded in the binary; in C for the reason that CDemoFiles.h gives.

#ifndef ROOST_COPSFILES_H
#define ROOST_COPSFILES_H

#include <stddef.h>

struct roost_ops_file {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

// All files, without folders in their names; `count` receives their number. Constant, so any thread may look.
const struct roost_ops_file *roost_ops_files(size_t *count);

#endif
