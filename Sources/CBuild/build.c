#include "CBuild.h"

// Package.swift defines it if ROOST_COMMIT was set in the environment of the build (scripts/package.sh, scripts/release.sh).
#ifndef ROOST_COMMIT
#define ROOST_COMMIT ""
#endif

const char *roost_commit(void) { return ROOST_COMMIT; }
