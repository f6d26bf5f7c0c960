/// Where clients come in: addresses, TLS, proxies, web pages.
extension Setting {
    static let httpHost = Setting(
        "http.host", .host, standard: .text("127.0.0.1"),
        "The address that clients connect to. Loopback suits a TLS proxy on the same machine; 0.0.0.0 is every address."
    )

    static let httpPort = Setting(
        "http.port", .integer(1...65_535), standard: .integer(4000),
        "The port of the WebSocket and of the HTTP API.")

    static let httpSocket = Setting(
        "http.socket", .path, standard: nil,
        "A Unix domain socket to listen at as well, for a proxy on the same machine. It speaks plain HTTP, with or "
            + "without tls. The file is made at the start and removed at the end.")

    static let httpSocketMode = Setting(
        "http.socket_mode", .mode, standard: .text("0660"),
        "The permissions of that file, in octal: whoever may write to it may connect.")

    static let httpOrigins = Setting(
        "http.origins", .origins, standard: nil, isReloaded: true,
        "The web pages that may use the hub, by their origins, with commas between them; * stands for subdomains. Pages "
            + "of other origins are refused with HTTP 403 and may not read the HTTP API's answers. When it is not set, all "
            + "may: what protects the hub is the token. Programs that are no browsers name no origin and are let in.")

    static let trustedProxies = Setting(
        "http.trusted_proxies", .networks, standard: nil, isReloaded: true,
        "The proxies whose X-Forwarded-For is believed: addresses, networks, or unix for whoever may open http.socket, "
            + "with commas between them. Limits by address, and addresses that keep failing, then go by the client's "
            + "address. From others the header means nothing.")

    static let tlsCertificate = Setting(
        "tls.certificate", .path, standard: nil,
        "A PEM file with the certificate of this server and, behind it, its chain: the port then speaks TLS (wss, https) "
            + "and nothing else. It is read again when it changes; sockets stay.")

    static let tlsKey = Setting(
        "tls.key", .path, standard: nil,
        "A PEM file with the certificate's private key, without a password.")
}
