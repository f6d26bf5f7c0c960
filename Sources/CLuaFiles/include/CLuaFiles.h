// The scripts that run in Redis, embedded in the binary: they stand in Sources/Redis/Lua.
//
// In C, because `#embed` (C23) costs the compiler nothing and knows when a file changed.

#ifndef ROOST_CLUAFILES_H
#define ROOST_CLUAFILES_H

#include <stddef.h>

struct roost_lua_file {
    // UTF-8, without a zero at its end.
    const unsigned char *text;
    size_t length;
};

// Constant, so any thread may look.
struct roost_lua_file roost_lua_open(void);
struct roost_lua_file roost_lua_publish(void);
struct roost_lua_file roost_lua_read(void);
struct roost_lua_file roost_lua_remove_foreign_lease(void);
struct roost_lua_file roost_lua_open_streams(void);
struct roost_lua_file roost_lua_write_streams(void);

#endif
