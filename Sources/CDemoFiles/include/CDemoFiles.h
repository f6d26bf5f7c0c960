// The demo's page and SQL, embedded in the binary.
//
// In C, because `#embed` (C23) costs the compiler nothing, where the same bytes as a Swift array literal cost it half a
// minute; and it knows when a file changed.

#ifndef ROOST_CDEMOFILES_H
#define ROOST_CDEMOFILES_H

#include <stddef.h>

struct roost_demo_file {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

// All files, without folders in their names; `count` receives their number. Constant, so any thread may look.
const struct roost_demo_file *roost_demo_files(size_t *count);

#endif
