// Hashes, message authentication codes, signatures, key agreement and encryption by OpenSSL's libcrypto 3: verifies tokens, signs
// provider tokens, and encrypts messages to browsers.
//
// Invariants
//   - Any thread may call any of these. A roost_mac and a roost_key never change once made, so several threads may use
//     one at once (openssl-threads(7)); only their owner frees them.
//   - The thread's error queue is left as it was: TLS on the same thread reads it (SSL_get_error(3)).
//   - Nothing prompts a person: a private key behind a passphrase is rejected.
//   - Lengths are in bytes. A pointer to no bytes may be NULL.

#ifndef ROOST_CCRYPTO_H
#define ROOST_CCRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum roost_hash { ROOST_SHA256, ROOST_SHA384, ROOST_SHA512 };
enum roost_curve { ROOST_P256, ROOST_P384, ROOST_P521 };
enum roost_scheme {
    ROOST_RSA_PKCS1, // RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2)
    ROOST_RSA_PSS,   // RSASSA-PSS with MGF1 of the same hash and a salt of the hash's length (RFC 7518, section 3.5)
    ROOST_ECDSA,     // r and s, each of the curve's length (RFC 7518, section 3.4), not DER
    ROOST_ED25519    // EdDSA (RFC 8032); the hash is ignored
};

#define ROOST_LONGEST_HASH 64
#define ROOST_LONGEST_SIGNATURE 1024 // of an RSA key of 8,192 bits

typedef struct roost_mac roost_mac;
typedef struct roost_key roost_key;

// Writes the hash to `out` and returns its length; 0 if memory is short.
size_t roost_hash(enum roost_hash hash, const uint8_t *bytes, size_t count, uint8_t out[ROOST_LONGEST_HASH]);

// Whether two texts of the same length are equal, in a time that depends only on the length.
bool roost_equal(const uint8_t *one, const uint8_t *other, size_t count);

// HMAC (RFC 2104) with one key. NULL if memory is short.
roost_mac *roost_mac_create(enum roost_hash hash, const uint8_t *key, size_t count);
void roost_mac_free(roost_mac *mac);
// Writes the code of `bytes` to `out` and returns its length; 0 if memory is short.
size_t roost_mac_code(const roost_mac *mac, const uint8_t *bytes, size_t count, uint8_t out[ROOST_LONGEST_HASH]);

// Public keys. NULL if the numbers form no key, or one that is too weak, or too large to be checked on a shared thread:
// RSA with fewer than 2,048 bits or more than 8,192, or with a public exponent of more than 33 bits; a point that is
// not on its curve or whose coordinates do not have the curve's length.
roost_key *roost_key_rsa(const uint8_t *modulus, size_t modulus_count, const uint8_t *exponent, size_t exponent_count);
roost_key *roost_key_ec(enum roost_curve curve, const uint8_t *x, size_t x_count, const uint8_t *y, size_t y_count);
roost_key *roost_key_ed25519(const uint8_t *bytes, size_t count);

// A private key of the curve P-256 in PEM, without a passphrase. NULL for anything else.
roost_key *roost_key_p256_pem(const char *pem, size_t count);

// A private RSA key in PEM, without a passphrase, of 2,048 bits to 8,192. NULL for anything else.
roost_key *roost_key_rsa_pem(const char *pem, size_t count);

// Numbers of P-256: a private key with the most significant byte first, and a public one as an uncompressed point (SEC 1, section
// 2.3.3).
#define ROOST_P256_SCALAR 32
#define ROOST_P256_POINT 65

// A private key; NULL for a number that is not one.
roost_key *roost_key_p256_private(const uint8_t scalar[ROOST_P256_SCALAR]);
// Writes the public half of a key of P-256. False if memory is short.
bool roost_key_p256_point(const roost_key *key, uint8_t out[ROOST_P256_POINT]);

bool roost_p256_is_point(const uint8_t bytes[ROOST_P256_POINT]);
// Agrees with the owner of the key `other` on a secret (ECDH; NIST SP 800-56A, section 5.7.1.2): writes the public half of `scalar` and
// the secret. False for an invalid number or point.
bool roost_p256_exchange(
    const uint8_t scalar[ROOST_P256_SCALAR], const uint8_t other[ROOST_P256_POINT], uint8_t own[ROOST_P256_POINT],
    uint8_t secret[ROOST_P256_SCALAR]);

void roost_key_free(roost_key *key);

// AES-128-GCM (NIST SP 800-38D) without additional data. `out` takes the text followed by a tag. Returns the length of both; 0 if
// memory is short.
#define ROOST_GCM_KEY 16
#define ROOST_GCM_NONCE 12
#define ROOST_GCM_TAG 16
size_t roost_gcm_seal(
    const uint8_t key[ROOST_GCM_KEY], const uint8_t nonce[ROOST_GCM_NONCE], const uint8_t *bytes, size_t count,
    uint8_t *out);

bool roost_key_verify(
    const roost_key *key, enum roost_scheme scheme, enum roost_hash hash, const uint8_t *signature,
    size_t signature_count, const uint8_t *bytes, size_t count);

// Writes the signature to `out` and returns its length; 0 if the key cannot sign this way.
size_t roost_key_sign(
    const roost_key *key, enum roost_scheme scheme, enum roost_hash hash, const uint8_t *bytes, size_t count,
    uint8_t out[ROOST_LONGEST_SIGNATURE]);

#endif
