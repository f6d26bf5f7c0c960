// Of OpenSSL, between tls.c and tunnel.c.
#include "CWebSockets.h"

#include <openssl/ssl.h>

// The settings of the server's side. Handshakes present what `presented` points to at the time. NULL if OpenSSL knows less than it
// has to, or there is no memory.
SSL_CTX *roost_tls_server(struct roost_certificate *const *presented);
