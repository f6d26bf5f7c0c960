// Key agreement and authenticated encryption, for messages to browsers (RFC 8291).

#include "CCrypto.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <pthread.h>

#define KEY(key) ((EVP_PKEY *)(key))

// Made once, and never written to: making it takes longer than half of an exchange.
static EC_GROUP *p256;
static pthread_once_t p256_once = PTHREAD_ONCE_INIT;

static void make_p256(void) { p256 = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1); }

static const EC_GROUP *group(void) {
    pthread_once(&p256_once, make_p256);
    return p256;
}

// Returns the number if it is from 1 to below the group's order, to be freed by BN_clear_free; NULL for any other.
static BIGNUM *scalar_of(const uint8_t bytes[ROOST_P256_SCALAR]) {
    BIGNUM *number = BN_new();
    if (group() && number && BN_bin2bn(bytes, ROOST_P256_SCALAR, number) && !BN_is_zero(number)
        && BN_cmp(number, EC_GROUP_get0_order(group())) < 0) {
        // The time taken must not reveal the number.
        BN_set_flags(number, BN_FLG_CONSTTIME);
        return number;
    }
    BN_clear_free(number);
    return NULL;
}

// Returns NULL for bytes that are not a point of the curve. The group's order is prime, so each point on it is as good as another (NIST
// SP 800-56A, section 5.6.2.3.4).
static EC_POINT *point_of(const uint8_t bytes[ROOST_P256_POINT]) {
    if (bytes[0] != POINT_CONVERSION_UNCOMPRESSED || !group()) return NULL;
    EC_POINT *point = EC_POINT_new(group());
    if (point && EC_POINT_oct2point(group(), point, bytes, ROOST_P256_POINT, NULL) == 1) return point;
    EC_POINT_free(point);
    return NULL;
}

static bool write_point(const EC_POINT *point, uint8_t out[ROOST_P256_POINT]) {
    return EC_POINT_point2oct(group(), point, POINT_CONVERSION_UNCOMPRESSED, out, ROOST_P256_POINT, NULL)
        == ROOST_P256_POINT;
}

// Writes the point that belongs to a private number.
static bool write_public(const BIGNUM *scalar, uint8_t out[ROOST_P256_POINT]) {
    EC_POINT *product = EC_POINT_new(group());
    bool is = product && EC_POINT_mul(group(), product, scalar, NULL, NULL, NULL) == 1 && write_point(product, out);
    EC_POINT_free(product);
    return is;
}

bool roost_p256_is_point(const uint8_t bytes[ROOST_P256_POINT]) {
    ERR_set_mark();
    EC_POINT *point = point_of(bytes);
    EC_POINT_free(point);
    ERR_pop_to_mark();
    return point != NULL;
}

bool roost_p256_exchange(
    const uint8_t scalar[ROOST_P256_SCALAR], const uint8_t other[ROOST_P256_POINT], uint8_t own[ROOST_P256_POINT],
    uint8_t secret[ROOST_P256_SCALAR]) {
    ERR_set_mark();
    BIGNUM *number = scalar_of(scalar);
    EC_POINT *point = point_of(other);
    BIGNUM *x = BN_new();
    bool is = number && point && x && write_public(number, own)
        && EC_POINT_mul(group(), point, NULL, point, number, NULL) == 1
        && EC_POINT_get_affine_coordinates(group(), point, x, NULL, NULL) == 1
        && BN_bn2binpad(x, secret, ROOST_P256_SCALAR) == ROOST_P256_SCALAR;
    BN_clear_free(x);
    EC_POINT_clear_free(point);
    BN_clear_free(number);
    ERR_pop_to_mark();
    return is;
}

roost_key *roost_key_p256_private(const uint8_t scalar[ROOST_P256_SCALAR]) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = NULL;
    uint8_t point[ROOST_P256_POINT];
    ERR_set_mark();
    BIGNUM *number = scalar_of(scalar);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (number && builder && context && write_public(number, point)
        && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0)
        && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point)
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number)
        && (parameters = OSSL_PARAM_BLD_to_param(builder)) && EVP_PKEY_fromdata_init(context) == 1
        && EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, parameters) != 1)
        key = NULL;
    OSSL_PARAM_free(parameters);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(number);
    ERR_pop_to_mark();
    return (roost_key *)key;
}

bool roost_key_p256_point(const roost_key *key, uint8_t out[ROOST_P256_POINT]) {
    size_t length = 0;
    ERR_set_mark();
    bool is = EVP_PKEY_get_octet_string_param(KEY(key), OSSL_PKEY_PARAM_PUB_KEY, out, ROOST_P256_POINT, &length) == 1
        && length == ROOST_P256_POINT && out[0] == POINT_CONVERSION_UNCOMPRESSED;
    ERR_pop_to_mark();
    return is;
}

size_t roost_gcm_seal(
    const uint8_t key[ROOST_GCM_KEY], const uint8_t nonce[ROOST_GCM_NONCE], const uint8_t *bytes, size_t count,
    uint8_t *out) {
    int length = 0, last = 0;
    if (count > 1 << 24) return 0;
    ERR_set_mark();
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool is = cipher && context && EVP_EncryptInit_ex2(context, cipher, key, nonce, NULL) == 1
        && EVP_EncryptUpdate(context, out, &length, bytes, (int)count) == 1
        && EVP_EncryptFinal_ex(context, out + length, &last) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, ROOST_GCM_TAG, out + length + last) == 1;
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
    ERR_pop_to_mark();
    return is ? (size_t)(length + last + ROOST_GCM_TAG) : 0;
}
