#include "CLuaFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char open_text[] = {
#embed "../Redis/Lua/Open.lua"
};
static const unsigned char publish_text[] = {
#embed "../Redis/Lua/Publish.lua"
};
static const unsigned char read_text[] = {
#embed "../Redis/Lua/Read.lua"
};
static const unsigned char remove_foreign_lease_text[] = {
#embed "../Redis/Lua/RemoveForeignLease.lua"
};
static const unsigned char open_streams_text[] = {
#embed "../Redis/Lua/OpenStreams.lua"
};
static const unsigned char write_streams_text[] = {
#embed "../Redis/Lua/WriteStreams.lua"
};

struct roost_lua_file roost_lua_open(void) { return (struct roost_lua_file){open_text, sizeof open_text}; }

struct roost_lua_file roost_lua_publish(void) { return (struct roost_lua_file){publish_text, sizeof publish_text}; }

struct roost_lua_file roost_lua_read(void) { return (struct roost_lua_file){read_text, sizeof read_text}; }

struct roost_lua_file roost_lua_remove_foreign_lease(void) {
    return (struct roost_lua_file){remove_foreign_lease_text, sizeof remove_foreign_lease_text};
}

struct roost_lua_file roost_lua_open_streams(void) {
    return (struct roost_lua_file){open_streams_text, sizeof open_streams_text};
}

struct roost_lua_file roost_lua_write_streams(void) {
    return (struct roost_lua_file){write_streams_text, sizeof write_streams_text};
}
