// The SQL of all rooms but the demo's, embedded in the binary: each file stands in the folder SQL of the room whose it is.
//
// In C, because `#embed` (C23) costs the compiler nothing, where the same bytes as a Swift array literal cost it more than a
// minute; and it knows when a file changed.

#ifndef ROOST_CSQLFILES_H
#define ROOST_CSQLFILES_H

#include <stddef.h>

struct roost_sql_file {
    // Without its folder; no two rooms have a file of one name.
    const char *name;
    // UTF-8, without a zero at its end.
    const unsigned char *text;
    size_t length;
};

// All files; `count` receives their number. Constant, so any thread may look.
const struct roost_sql_file *roost_sql_files(size_t *count);

#endif
