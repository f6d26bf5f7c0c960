#include "CCrypto.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <string.h>

// A roost_mac is an EVP_MAC_CTX with its key set; a roost_key is an EVP_PKEY.
#define MAC(mac) ((EVP_MAC_CTX *)(mac))
#define KEY(key) ((EVP_PKEY *)(key))

#define LEAST_RSA_BITS 2048
#define MOST_RSA_BITS 8192
#define MOST_EXPONENT_BITS 33
#define LONGEST_COORDINATE 66 // of P-521

static const char *const hash_names[] = {"SHA256", "SHA384", "SHA512"};

static const struct {
    const char *name;
    size_t length; // of a coordinate
} curves[] = {{"prime256v1", 32}, {"secp384r1", 48}, {"secp521r1", LONGEST_COORDINATE}};

// Some functions take NULL to mean "the same as before".
static const uint8_t *some(const uint8_t *bytes) { return bytes ? bytes : (const uint8_t *)""; }

size_t roost_hash(enum roost_hash hash, const uint8_t *bytes, size_t count, uint8_t out[ROOST_LONGEST_HASH]) {
    size_t length = 0;
    ERR_set_mark();
    if (!EVP_Q_digest(NULL, hash_names[hash], NULL, some(bytes), count, out, &length)) length = 0;
    ERR_pop_to_mark();
    return length;
}

bool roost_equal(const uint8_t *one, const uint8_t *other, size_t count) {
    return CRYPTO_memcmp(some(one), some(other), count) == 0;
}

// Looked up once: a key is often used for one message only, whose code takes less time than the lookup of the algorithm.
static EVP_MAC *hmac;
static pthread_once_t hmac_once = PTHREAD_ONCE_INIT;

static void find_hmac(void) { hmac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL); }

roost_mac *roost_mac_create(enum roost_hash hash, const uint8_t *key, size_t count) {
    pthread_once(&hmac_once, find_hmac);
    if (!hmac) return NULL;
    ERR_set_mark();
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(hmac);
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)hash_names[hash], 0),
        OSSL_PARAM_construct_end(),
    };
    if (!context || !EVP_MAC_init(context, some(key), count, parameters)) {
        EVP_MAC_CTX_free(context);
        context = NULL;
    }
    ERR_pop_to_mark();
    return (roost_mac *)context;
}

void roost_mac_free(roost_mac *mac) { EVP_MAC_CTX_free(MAC(mac)); }

size_t roost_mac_code(const roost_mac *mac, const uint8_t *bytes, size_t count, uint8_t out[ROOST_LONGEST_HASH]) {
    size_t length = 0;
    ERR_set_mark();
    EVP_MAC_CTX *context = EVP_MAC_CTX_dup(MAC(mac));
    if (!context || !EVP_MAC_update(context, some(bytes), count)
        || !EVP_MAC_final(context, out, &length, ROOST_LONGEST_HASH))
        length = 0;
    EVP_MAC_CTX_free(context);
    ERR_pop_to_mark();
    return length;
}

// Takes ownership of the builder.
static EVP_PKEY *public_key(const char *type, OSSL_PARAM_BLD *builder) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!parameters || !context || EVP_PKEY_fromdata_init(context) != 1
        || EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

static bool is_consistent(EVP_PKEY *key, int (*check)(EVP_PKEY_CTX *)) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    bool is = context && check(context) == 1;
    EVP_PKEY_CTX_free(context);
    return is;
}

roost_key *roost_key_rsa(const uint8_t *modulus, size_t modulus_count, const uint8_t *exponent, size_t exponent_count) {
    if (modulus_count > 2 * MOST_RSA_BITS / 8 || exponent_count > 2 * MOST_RSA_BITS / 8) return NULL;
    EVP_PKEY *key = NULL;
    ERR_set_mark();
    BIGNUM *n = BN_bin2bn(some(modulus), (int)modulus_count, NULL);
    BIGNUM *e = BN_bin2bn(some(exponent), (int)exponent_count, NULL);
    if (n && e && BN_num_bits(n) >= LEAST_RSA_BITS && BN_num_bits(n) <= MOST_RSA_BITS && BN_is_odd(n) && BN_is_odd(e)
        && !BN_is_one(e) && BN_num_bits(e) <= MOST_EXPONENT_BITS) {
        OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
        if (builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n)
            && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e))
            key = public_key("RSA", builder);
        else
            OSSL_PARAM_BLD_free(builder);
    }
    BN_free(n);
    BN_free(e);
    ERR_pop_to_mark();
    return (roost_key *)key;
}

roost_key *roost_key_ec(enum roost_curve curve, const uint8_t *x, size_t x_count, const uint8_t *y, size_t y_count) {
    size_t length = curves[curve].length;
    if (x_count != length || y_count != length) return NULL;
    // SEC 1, section 2.3.3: an uncompressed point.
    uint8_t point[1 + 2 * LONGEST_COORDINATE] = {POINT_CONVERSION_UNCOMPRESSED};
    memcpy(point + 1, x, length);
    memcpy(point + 1 + length, y, length);
    EVP_PKEY *key = NULL;
    ERR_set_mark();
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curves[curve].name, 0)
        && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * length))
        key = public_key("EC", builder);
    else
        OSSL_PARAM_BLD_free(builder);
    if (key && !is_consistent(key, EVP_PKEY_public_check)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_pop_to_mark();
    return (roost_key *)key;
}

roost_key *roost_key_ed25519(const uint8_t *bytes, size_t count) {
    ERR_set_mark();
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key_ex(NULL, "ED25519", NULL, some(bytes), count);
    ERR_pop_to_mark();
    return (roost_key *)key;
}

static int no_passphrase(char *buffer, int size, int is_writing, void *data) {
    (void)buffer, (void)size, (void)is_writing, (void)data;
    return -1;
}

static EVP_PKEY *private_key(const char *pem, size_t count, bool (*is_good)(EVP_PKEY *)) {
    if (count > 65536) return NULL;
    ERR_set_mark();
    BIO *text = BIO_new_mem_buf(pem, (int)count);
    EVP_PKEY *key = text ? PEM_read_bio_PrivateKey(text, NULL, no_passphrase, NULL) : NULL;
    if (key && !is_good(key)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    BIO_free(text);
    ERR_pop_to_mark();
    return key;
}

static bool is_p256(EVP_PKEY *key) {
    char group[32] = "";
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1
        && strcmp(group, curves[ROOST_P256].name) == 0 && is_consistent(key, EVP_PKEY_pairwise_check);
}

roost_key *roost_key_p256_pem(const char *pem, size_t count) { return (roost_key *)private_key(pem, count, is_p256); }

static bool is_rsa(EVP_PKEY *key) {
    int bits = EVP_PKEY_get_bits(key);
    return EVP_PKEY_is_a(key, "RSA") && bits >= LEAST_RSA_BITS && bits <= MOST_RSA_BITS
        && is_consistent(key, EVP_PKEY_pairwise_check);
}

roost_key *roost_key_rsa_pem(const char *pem, size_t count) { return (roost_key *)private_key(pem, count, is_rsa); }

void roost_key_free(roost_key *key) { EVP_PKEY_free(KEY(key)); }

static const char *type_names[] = {
    [ROOST_RSA_PKCS1] = "RSA", [ROOST_RSA_PSS] = "RSA", [ROOST_ECDSA] = "EC", [ROOST_ED25519] = "ED25519"};

static const char *hash_name(enum roost_scheme scheme, enum roost_hash hash) {
    return scheme == ROOST_ED25519 ? NULL : hash_names[hash];
}

static bool set_padding(EVP_PKEY_CTX *context, enum roost_scheme scheme) {
    switch (scheme) {
    case ROOST_RSA_PKCS1: return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
    case ROOST_RSA_PSS:
        return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
            && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1;
    default: return true;
    }
}

// Returns the length of half of a raw signature.
static size_t coordinate_length(const EVP_PKEY *key) { return ((size_t)EVP_PKEY_get_bits(key) + 7) / 8; }

// Encodes an ECDSA signature as DER, which the caller frees. Returns its length, or 0 if the raw signature does not
// have the curve's length.
static size_t der_of_raw(const EVP_PKEY *key, const uint8_t *raw, size_t count, uint8_t **der) {
    size_t half = coordinate_length(key);
    if (count != 2 * half) return 0;
    int length = 0;
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, (int)half, NULL);
    BIGNUM *s = BN_bin2bn(raw + half, (int)half, NULL);
    if (signature && r && s && ECDSA_SIG_set0(signature, r, s)) {
        length = i2d_ECDSA_SIG(signature, der);
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(signature);
    return length > 0 ? (size_t)length : 0;
}

static size_t raw_of_der(const EVP_PKEY *key, const uint8_t *der, size_t count, uint8_t *raw) {
    size_t half = coordinate_length(key);
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)count);
    bool fits = signature && BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, (int)half) == (int)half
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + half, (int)half) == (int)half;
    ECDSA_SIG_free(signature);
    return fits ? 2 * half : 0;
}

bool roost_key_verify(
    const roost_key *key, enum roost_scheme scheme, enum roost_hash hash, const uint8_t *signature,
    size_t signature_count, const uint8_t *bytes, size_t count) {
    if (!EVP_PKEY_is_a(KEY(key), type_names[scheme])) return false;
    ERR_set_mark();
    uint8_t *der = NULL;
    if (scheme == ROOST_ECDSA) {
        signature_count = der_of_raw(KEY(key), signature, signature_count, &der);
        signature = der;
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *options = NULL; // the context's
    bool is_right = signature_count && context
        && EVP_DigestVerifyInit_ex(context, &options, hash_name(scheme, hash), NULL, NULL, KEY(key), NULL) == 1
        && set_padding(options, scheme)
        && EVP_DigestVerify(context, signature, signature_count, some(bytes), count) == 1;
    EVP_MD_CTX_free(context);
    OPENSSL_free(der);
    ERR_pop_to_mark();
    return is_right;
}

size_t roost_key_sign(
    const roost_key *key, enum roost_scheme scheme, enum roost_hash hash, const uint8_t *bytes, size_t count,
    uint8_t out[ROOST_LONGEST_SIGNATURE]) {
    if (!EVP_PKEY_is_a(KEY(key), type_names[scheme])) return 0;
    ERR_set_mark();
    uint8_t made[ROOST_LONGEST_SIGNATURE];
    size_t length = sizeof made;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *options = NULL; // the context's
    if (!context
        || EVP_DigestSignInit_ex(context, &options, hash_name(scheme, hash), NULL, NULL, KEY(key), NULL) != 1
        || !set_padding(options, scheme) || EVP_DigestSign(context, made, &length, some(bytes), count) != 1) {
        length = 0;
    } else if (scheme == ROOST_ECDSA) {
        length = raw_of_der(KEY(key), made, length, out);
    } else {
        memcpy(out, made, length);
    }
    EVP_MD_CTX_free(context);
    ERR_pop_to_mark();
    return length;
}
