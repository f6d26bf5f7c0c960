#ifndef ROOST_CBUILD_H
#define ROOST_CBUILD_H

// What the build knows and the sources do not.

/// The commit that the program was built from, as `0123456789ab`, with `+changes` behind it if the tree had some; empty in
/// a build for development, which nobody should have to make anew for each commit.
const char *roost_commit(void);

#endif
