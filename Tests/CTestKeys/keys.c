#include "CTestKeys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

#define KEY(key) ((EVP_PKEY *)(key))

roost_key *roost_test_key_create(const char *type, size_t bits) {
    if (strcmp(type, "RSA") == 0) return (roost_key *)EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
    if (strcmp(type, "ED25519") == 0) return (roost_key *)EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    return (roost_key *)EVP_PKEY_Q_keygen(NULL, NULL, "EC", type);
}

size_t roost_test_key_number(const roost_key *key, const char *name, uint8_t *out, size_t capacity) {
    if (strcmp(name, "pub") == 0) {
        size_t length = capacity;
        return EVP_PKEY_get_raw_public_key(KEY(key), out, &length) == 1 ? length : 0;
    }
    bool is_of_a_point = strcmp(name, "x") == 0 || strcmp(name, "y") == 0;
    const char *parameter = strcmp(name, "n") == 0 ? OSSL_PKEY_PARAM_RSA_N
        : strcmp(name, "e") == 0                   ? OSSL_PKEY_PARAM_RSA_E
        : strcmp(name, "x") == 0                   ? OSSL_PKEY_PARAM_EC_PUB_X
                                                   : OSSL_PKEY_PARAM_EC_PUB_Y;
    BIGNUM *number = NULL;
    if (EVP_PKEY_get_bn_param(KEY(key), parameter, &number) != 1) return 0;
    size_t length = is_of_a_point ? ((size_t)EVP_PKEY_get_bits(KEY(key)) + 7) / 8 : (size_t)BN_num_bytes(number);
    bool is_written = length <= capacity && BN_bn2binpad(number, out, (int)length) == (int)length;
    BN_free(number);
    return is_written ? length : 0;
}

size_t roost_test_key_write(const roost_key *key, enum roost_test_form form, uint8_t *out, size_t capacity) {
    BIO *text = BIO_new(BIO_s_mem());
    int done = form == ROOST_PRIVATE_PEM ? PEM_write_bio_PKCS8PrivateKey(text, KEY(key), NULL, NULL, 0, NULL, NULL)
        : form == ROOST_PUBLIC_PEM       ? PEM_write_bio_PUBKEY(text, KEY(key))
                                         : i2d_PUBKEY_bio(text, KEY(key));
    char *bytes = NULL;
    long length = done == 1 ? BIO_get_mem_data(text, &bytes) : 0;
    if (length < 0 || (size_t)length > capacity) length = 0;
    memcpy(out, bytes ? bytes : "", (size_t)length);
    BIO_free(text);
    return (size_t)length;
}
