// Key pairs for tests: libcrypto makes them, and tells their public halves in the forms that others know them by.
// CCrypto signs and verifies with them.

#ifndef ROOST_CTESTKEYS_H
#define ROOST_CTESTKEYS_H

#include "CCrypto.h"

// A new pair of the type "RSA" (with that many bits), "P-256", "P-384", "P-521" or "ED25519"; freed by roost_key_free.
roost_key *roost_test_key_create(const char *type, size_t bits);

// A part of the public key: "n" or "e" of RSA, "x" or "y" of a point, "pub" of Ed25519. Its length, or 0.
size_t roost_test_key_number(const roost_key *key, const char *name, uint8_t *out, size_t capacity);

enum roost_test_form { ROOST_PRIVATE_PEM, ROOST_PUBLIC_PEM, ROOST_PUBLIC_DER };
// The whole key. Its length, or 0 where `capacity` is less.
size_t roost_test_key_write(const roost_key *key, enum roost_test_form form, uint8_t *out, size_t capacity);

#endif
